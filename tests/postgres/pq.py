"""Statements on a PostgreSQL by libpq itself: what tests ask again and again until it is true costs
no process of psql and no new session each time.

    pq.rows(url, "SELECT ...")       rows as lists of texts, NULL is ''; of all results, as psql shows
    pq.rows(url, "...", fresh=True)  in a session of its own

A thread keeps the session of the URL it named last; nothing that a statement sets there stays."""
import ctypes
import select
import threading

COMMAND_OK, TUPLES_OK = 1, 2
GOOD = 0
KEPT = threading.local()


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
def ignore_notice(_, __):
    """DROP ... CASCADE has many."""


def library():
    pq = ctypes.CDLL("libpq.so.5")
    of_connection, of_result = [ctypes.c_void_p], [ctypes.c_void_p]
    for name, takes, gives in (
            ("PQconnectdb", [ctypes.c_char_p], ctypes.c_void_p),
            ("PQstatus", of_connection, ctypes.c_int), ("PQsocket", of_connection, ctypes.c_int),
            ("PQerrorMessage", of_connection, ctypes.c_char_p),
            ("PQfinish", of_connection, None), ("PQgetResult", of_connection, ctypes.c_void_p),
            ("PQsendQuery", [ctypes.c_void_p, ctypes.c_char_p], ctypes.c_int),
            ("PQsetNoticeProcessor", [ctypes.c_void_p] * 3, ctypes.c_void_p),
            ("PQresultStatus", of_result, ctypes.c_int),
            ("PQresultErrorMessage", of_result, ctypes.c_char_p), ("PQclear", of_result, None),
            ("PQntuples", of_result, ctypes.c_int), ("PQnfields", of_result, ctypes.c_int),
            ("PQgetvalue", [ctypes.c_void_p, ctypes.c_int, ctypes.c_int], ctypes.c_char_p)):
        function = getattr(pq, name)
        function.argtypes, function.restype = takes, gives
    return pq


PQ = library()


class Failed(AssertionError):
    """What the server, or the way to it, said."""


class Session:
    def __init__(self, url):
        self.url = url
        self.connection = PQ.PQconnectdb(url.encode())
        if PQ.PQstatus(self.connection) != GOOD:
            raise Failed(PQ.PQerrorMessage(self.connection).decode())
        PQ.PQsetNoticeProcessor(self.connection, ctypes.cast(ignore_notice, ctypes.c_void_p), None)

    def __del__(self):
        self.close()

    def close(self):
        if self.connection:
            PQ.PQfinish(self.connection)
        self.connection = None

    def quiet(self):
        """Not when the server has said something meanwhile, such as that it ends."""
        return not select.select([PQ.PQsocket(self.connection)], [], [], 0)[0]

    def rows(self, text):
        found, failed = [], None
        if not PQ.PQsendQuery(self.connection, text.encode()):
            raise Failed(PQ.PQerrorMessage(self.connection).decode())
        while result := PQ.PQgetResult(self.connection):
            if PQ.PQresultStatus(result) not in (COMMAND_OK, TUPLES_OK):
                failed = PQ.PQresultErrorMessage(result).decode()
            columns = range(PQ.PQnfields(result))
            found += [[PQ.PQgetvalue(result, row, column).decode() for column in columns]
                      for row in range(PQ.PQntuples(result))]
            PQ.PQclear(result)
        if failed is not None:
            raise Failed(f"{failed}{text[:500]}")
        return found


def forget():
    """Ends the session that this thread keeps, for what goes only without: databases to copy."""
    session = KEPT.__dict__.pop("session", None)
    if session:
        session.close()


def rows(url, text, fresh=False):
    session = KEPT.__dict__.get("session")
    if fresh or not session or session.url != url or not session.quiet():
        forget()
        session = Session(url)
    KEPT.session = session
    try:
        found = session.rows(text)
        if not fresh:
            session.rows("DISCARD ALL")
            return found
    except Failed:
        forget()
        raise
    forget()
    return found
