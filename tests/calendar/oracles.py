"""Compares the calendar with calendars that others wrote: Python's zoneinfo, dateutil, croniter and
cron-parser of npm; and recurrences in zones with brute force (naive_rrule.py). Not run by itself: test_oracles.py takes a sample in `make test`, proof.py more
of it in `make calendar-proof`.

Each function returns a dict: oracle, compared, mismatches (a list of texts), or skipped with the
reason. Only what the other one means alike is compared; where it does not is said beside it."""
import calendar
import datetime
import json
import os
import random
import signal
import subprocess
import zoneinfo

import naive_rrule

HERE = os.path.dirname(os.path.abspath(__file__))
SHOWN = 5
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
LONG_AGO = -62000000000


class Probe:
    """The program calendar_probe: one question per line, one answer per line."""

    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def ask(self, *fields):
        self.process.stdin.write("\t".join(str(field) for field in fields) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def instants(self, kind, zone, policy, after, count, text):
        answer = self.ask(kind, zone, policy, after, count, text)
        if answer.startswith("error"):
            return answer
        return [int(word) for word in answer.split()]

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def zone_names(folder=None):
    """Every name of the system's zones, without the copies in posix/ and right/."""
    folder = folder or os.environ.get("TZDIR") or "/usr/share/zoneinfo"
    names = []
    for path, folders, files in os.walk(folder):
        if path == folder:
            folders[:] = [name for name in folders if name not in ("posix", "right")]
        for file in files:
            whole = os.path.join(path, file)
            with open(whole, "rb") as handle:
                if handle.read(4) == b"TZif":
                    names.append(os.path.relpath(whole, folder))
    return sorted(name for name in names if name not in ("localtime", "posixrules"))


def seconds(moment):
    return calendar.timegm(moment.timetuple())


def result(oracle, compared, mismatches):
    return {"oracle": oracle, "compared": compared, "mismatches": mismatches}


# ---- zones ----

def zones(probe, names, per_zone, seed=1):
    """Offsets at random instants of 1900 to 2200, and local times back to instants, against
    zoneinfo. The fold of Python is our first and second; a local time in a gap is compared as what
    its two readings lie around."""
    choice = random.Random(seed)
    low, high = seconds(datetime.datetime(1900, 1, 1)), seconds(datetime.datetime(2200, 1, 1))
    utc = datetime.timezone.utc
    epoch = datetime.datetime(1970, 1, 1, tzinfo=utc)
    compared, wrong = 0, []
    for name in names:
        info = zoneinfo.ZoneInfo(name)
        times = [choice.randrange(low, high) for _ in range(per_zone)]
        offsets = [int(word) for word in probe.ask("offset", name, *times).split()]
        for time, offset in zip(times, offsets):
            moment = (epoch + datetime.timedelta(seconds=time)).astimezone(info)
            compared += 1
            if int(moment.utcoffset().total_seconds()) != offset:
                wrong.append(f"{name} at {time}: {offset} instead of {moment.utcoffset()}")
            kind, first, second = map(int, probe.ask("local", name, time + offset).split())
            compared += 1
            if kind == 1 or time not in (first, second):
                wrong.append(f"{name}: local {time + offset} gives {kind} {first} {second}")
            naive = moment.replace(tzinfo=None)
            theirs = [int((naive.replace(tzinfo=info, fold=fold) - epoch).total_seconds())
                      for fold in (0, 1)]
            if kind != 1 and theirs != [first, second]:
                wrong.append(f"{name}: local {naive}: {first} {second} instead of {theirs}")
    return result("zoneinfo (Python)", compared, wrong)


# ---- recurrences ----

def number_list(choice, low, high, most, signed=False):
    numbers = set()
    for _ in range(choice.randint(1, most)):
        number = choice.randint(low, high)
        numbers.add(-number if signed and choice.random() < 0.4 else number)
    return ",".join(str(number) for number in sorted(numbers))


def random_day_parts(choice, freq):
    parts = []
    by_week = freq == "YEARLY" and choice.random() < 0.2
    if choice.random() < 0.4:
        parts.append("BYMONTH=" + number_list(choice, 1, 12, 4))
    if by_week:
        # dateutil is wrong about the last weeks of the year before, and knows of -1 only there.
        parts.append("BYWEEKNO=" + number_list(choice, 2, 51, 4))
    if freq in ("YEARLY", "HOURLY", "MINUTELY", "SECONDLY") and choice.random() < 0.15:
        parts.append("BYYEARDAY=" + number_list(choice, 1, 366, 5, True))
    if freq != "WEEKLY" and choice.random() < 0.3:
        parts.append("BYMONTHDAY=" + number_list(choice, 1, 31, 4, True))
    if by_week or choice.random() < 0.4:
        days = choice.sample(WEEKDAYS, choice.randint(1, 4))
        if freq in ("YEARLY", "MONTHLY") and not by_week and choice.random() < 0.6:
            days = {f"{choice.choice((1, 2, 3, 4, 5, -1, -2, -5))}{day}" for day in days}
        parts.append("BYDAY=" + ",".join(sorted(days)))
    return parts


def random_rule(choice):
    freq = choice.choice(("YEARLY", "YEARLY", "MONTHLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY",
                          "MINUTELY", "SECONDLY"))
    parts = ["FREQ=" + freq] + random_day_parts(choice, freq)
    if choice.random() < 0.5:
        parts.append(f"INTERVAL={choice.choice((1, 2, 3, 4, 5, 7, 10, 13))}")
    for name, high, chance in (("HOUR", 23, 0.3), ("MINUTE", 59, 0.3), ("SECOND", 59, 0.2)):
        if choice.random() < chance:
            parts.append(f"BY{name}=" + number_list(choice, 0, high, 4))
    # dateutil cuts the first week off at DTSTART before it counts positions.
    if len(parts) > 2 and freq != "WEEKLY" and any(part[:2] == "BY" for part in parts):
        if choice.random() < 0.3:
            parts.append("BYSETPOS=" + number_list(choice, 1, 5, 3, True))
    if choice.random() < 0.3:
        parts.append("WKST=" + choice.choice(WEEKDAYS))
    if choice.random() < 0.2:
        parts.append(f"COUNT={choice.randint(1, 40)}")
    elif choice.random() < 0.2:
        parts.append(f"UNTIL=2031{choice.randint(1, 12):02}{choice.randint(1, 28):02}T120000")
    choice.shuffle(parts)
    return ";".join(parts)


class TooLong(Exception):
    pass


def stop_it(*_):
    raise TooLong


def first_of(read, text, count, limit_s=0.3):
    """The first instants of dateutil's rule, and whether that is all it said in time."""
    found = []
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
    try:
        for moment in read(text):
            found.append(seconds(moment))
            if len(found) == count:
                break
        return found, True
    except ValueError:  # it can tell that the rule never fires
        return found, True
    except TooLong:
        return found, False
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def rules(probe, count, seed=1):
    """Made-up recurrences in UTC against dateutil. It continues for millennia where we end after a
    hundred years without one; only what both have is compared then."""
    try:
        from dateutil.rrule import rrulestr
    except ImportError:
        return {"oracle": "dateutil (Python)", "skipped": "python3-dateutil is not installed"}
    choice = random.Random(seed)
    compared, wrong = 0, []
    before = signal.signal(signal.SIGVTALRM, stop_it)
    for _ in range(count):
        rule = random_rule(choice)
        start = datetime.datetime(choice.randint(1995, 2030), choice.randint(1, 12),
                                  choice.randint(1, 28), choice.randint(0, 23),
                                  choice.randint(0, 59), choice.randint(0, 59))
        text = f"DTSTART:{start:%Y%m%dT%H%M%S}"
        ours = probe.instants("rrule", "UTC", "standard", LONG_AGO, 30, f"{text}|RRULE:{rule}")
        theirs, whole = first_of(rrulestr, f"{text}\nRRULE:{rule}", 30)
        if isinstance(ours, str):
            if theirs and theirs[0] - seconds(start) < 99 * 31556952:
                wrong.append(f"{text} {rule}: {ours}")
            continue
        same = len(ours) if whole and far_apart(ours, theirs) else len(theirs)
        compared += same
        if ours[:same] != theirs[:same] or (whole and len(ours) > len(theirs)):
            wrong.append(f"{text} {rule}: {ours[:4]} instead of {theirs[:4]}")
    signal.signal(signal.SIGVTALRM, before)
    return result("dateutil (Python)", compared, wrong)


def far_apart(ours, theirs):
    """We have ended because the next one is a hundred years away."""
    return 0 < len(ours) < len(theirs) and theirs[len(ours)] - ours[-1] > 99 * 31556952


def iso_weeks(probe):
    """The weeks dateutil is not asked about, against the ISO calendar of Python's datetime: each day
    of 1997 to 2060 by the number of their week, from the front and from the end of its year."""
    first, last = datetime.date(1997, 1, 1), datetime.date(2060, 12, 31)
    days = [first + datetime.timedelta(days=i) for i in range((last - first).days + 1)]
    compared, wrong = 0, []
    for week in (1, 2, 51, 52, 53, -1, -2, -51, -52, -53):
        expected = []
        for day in days:
            year, number, _ = day.isocalendar()
            weeks = datetime.date(year, 12, 28).isocalendar()[1]
            if week in (number, number - weeks - 1):
                expected.append(seconds(day))
        text = ("DTSTART:19970101T000000|RRULE:FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;"
                f"BYWEEKNO={week}")
        ours = probe.instants("rrule", "UTC", "standard", LONG_AGO, len(expected), text)
        compared += len(expected)
        if ours != expected:
            wrong.append(f"week {week}: {ours[:4]} instead of {expected[:4]}")
    return result("ISO weeks (Python)", compared, wrong)


RULE_ZONES = ("America/New_York", "Europe/Paris", "Australia/Lord_Howe", "Pacific/Apia",
              "Africa/Cairo", "Africa/Casablanca", "Antarctica/Troll", "America/Sao_Paulo",
              "Asia/Beirut", "America/Havana", "Asia/Tehran", "Europe/Dublin")

DAYS_BEFORE = {"SECONDLY": 0, "MINUTELY": 3, "HOURLY": 20}  # so that the change is reached
PLAIN_RULES = ("FREQ=DAILY", "FREQ=DAILY;INTERVAL=3", "FREQ=WEEKLY", "FREQ=WEEKLY;INTERVAL=2",
               "FREQ=DAILY;BYHOUR=0,1,2,3;BYMINUTE=0,30", "FREQ=MONTHLY;BYDAY=2SU,-1SU,1SU",
               "FREQ=YEARLY;BYDAY=SU,FR", "FREQ=HOURLY", "FREQ=MINUTELY;INTERVAL=15",
               "FREQ=DAILY;COUNT=90", "FREQ=MONTHLY;BYDAY=SU;BYSETPOS=-1,2",
               "FREQ=DAILY;BYHOUR=1,2;BYMINUTE=0,15,30,45;BYSETPOS=1,-1,3")


def changes_of(zone, first_year, last_year):
    """What clocks show when they are changed."""
    info = zoneinfo.ZoneInfo(zone)
    day = datetime.datetime(first_year, 1, 1, tzinfo=datetime.timezone.utc)
    found, before = [], day.astimezone(info).utcoffset()
    while day.year <= last_year:
        if (day + naive_rrule.DAY).astimezone(info).utcoffset() != before:
            hours = [day + datetime.timedelta(hours=hour) for hour in range(25)]
            at = next(hour for hour in hours if hour.astimezone(info).utcoffset() != before)
            found.append((at + before).replace(tzinfo=None, minute=0))
            before = at.astimezone(info).utcoffset()
        day += naive_rrule.DAY
    return found


def start_before(choice, change, freq):
    """Some days before a change, at a time of day that clocks jump over or show twice then."""
    near = datetime.timedelta(minutes=choice.choice((-90, -61, -60, -45, -30, -15, 0, 1, 15, 30,
                                                     45, 59, 60, 90)))
    days = choice.randint(0, DAYS_BEFORE.get(freq, 60))
    return change + near - naive_rrule.DAY * (days // 7 * 7 if freq == "WEEKLY" else days)


def rules_in_zones(probe, count, seed=1):
    """Recurrences that begin shortly before clocks are changed, plain and made-up ones in turns,
    with every policy, against brute force (naive_rrule.py)."""
    choice = random.Random(seed)
    changes = {zone: changes_of(zone, 2005, 2027) for zone in RULE_ZONES}
    compared, wrong = 0, []
    for i in range(count):
        zone, policy = choice.choice(RULE_ZONES), ("standard", "skip", "both")[i % 3]
        rule = random_rule(choice) if i % 2 else choice.choice(PLAIN_RULES)
        freq = next(part[5:] for part in rule.split(";") if part.startswith("FREQ="))
        start = start_before(choice, choice.choice(changes[zone]), freq)
        text = f"DTSTART:{start:%Y%m%dT%H%M%S}|RRULE:{rule}"
        theirs, end = naive_rrule.instants(rule, start, zoneinfo.ZoneInfo(zone), policy)
        ours = probe.instants("rrule", zone, policy, LONG_AGO, len(theirs) + 1, text)
        if isinstance(ours, str):
            ours = []
        compared += len(theirs)
        more = ours[len(theirs):]
        if ours[:len(theirs)] != theirs or (more and (end is None or more[0] < end)):
            wrong.append(f"{text} in {zone}, {policy}: {ours[:4]} instead of {theirs[:4]}")
    return result("brute force of recurrences", compared, wrong)


# ---- cron ----

def random_cron(choice, special):
    """Five fields that croniter and cron-parser mean as we do: both take a step in a day field
    for a restriction, which Debian's cron does not, so that there is none."""
    def values(low, high):
        first, second = sorted(choice.sample(range(low, high + 1), 2))
        return choice.choice((f"{first}", f"{first},{second}", f"{first}-{second}"))

    minute = choice.choice(("*/7", "*", values(0, 59), values(0, 59)))
    hour = choice.choice(("*", "*/5", values(0, 23), values(0, 23)))
    day = choice.choice(("*", "*", "L", values(1, 28)) if special else ("*", "*", values(1, 28)))
    month = choice.choice(("*", "*", values(1, 12)))
    weekday = choice.choice(("*", "*", values(0, 6)))
    if special and choice.random() < 0.3:
        day = "*"
        weekday = choice.choice((f"{choice.randint(0, 6)}#{choice.randint(1, 5)}",
                                 f"{choice.randint(0, 6)}L"))
    return f"{minute} {hour} {day} {month} {weekday}"


def croniter_expressions(probe, count, seed=1):
    """croniter 1.3.5, in UTC only: it never gets past a gap. It takes 0-6 for '*', which is no
    restriction then; Debian's cron, cron-parser and we do not."""
    try:
        import croniter
    except ImportError:
        return {"oracle": "croniter (Python)", "skipped": "python3-croniter is not installed"}
    choice = random.Random(seed)
    compared, wrong = 0, []
    for _ in range(count):
        text = random_cron(choice, False)
        if text.endswith(" 0-6"):
            continue
        start = datetime.datetime(choice.randint(2000, 2090), choice.randint(1, 12),
                                  choice.randint(1, 28), choice.randint(0, 23), 30)
        theirs_next = croniter.croniter(text, start)
        theirs = [seconds(theirs_next.get_next(datetime.datetime)) for _ in range(10)]
        ours = probe.instants("cron", "UTC", "standard", seconds(start), 10, text)
        compared += len(theirs)
        if ours != theirs:
            wrong.append(f"{text} after {start}: {ours} instead of {theirs}")
    return result("croniter (Python)", compared, wrong)


ZONES_ALIKE = ("America/New_York", "Europe/Paris", "Australia/Sydney", "Asia/Kolkata",
               "America/Santiago")


def cron_parser(probe, folder, count, seed=1):
    """cron-parser of npm: in UTC with L, # and 5L; in zones where both mean alike: fixed times that
    are never in a gap (it fires 30 minutes late after one, and loses midnights that are), and
    whole hours and minutes in real time."""
    if not os.path.isdir(os.path.join(folder, "node_modules", "cron-parser")):
        return {"oracle": "cron-parser (npm)", "skipped": "cron-parser is not installed"}
    choice = random.Random(seed)
    node = subprocess.Popen(["node", os.path.join(HERE, "cron_parser.mjs"), folder],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    compared, wrong = 0, []
    for i in range(count):
        zone, text = "UTC", random_cron(choice, True)
        if i % 2:
            zone = choice.choice(ZONES_ALIKE)
            text = choice.choice((f"{choice.randint(0, 59)} {choice.randint(4, 22)} * * *",
                                  f"{choice.randint(0, 59)} * * * *", "*/15 * * * *",
                                  f"30 {choice.randint(4, 22)} * * {choice.randint(0, 6)}"))
        month = choice.choice((3, 4, 9, 10, 11))
        after = seconds(datetime.datetime(choice.randint(2000, 2036), month, choice.randint(1, 28),
                                          choice.randint(0, 23), 30))
        question = {"cron": text, "zone": zone, "after": after, "count": 24}
        node.stdin.write(json.dumps(question) + "\n")
        node.stdin.flush()
        theirs = json.loads(node.stdout.readline())
        ours = probe.instants("cron", zone, "standard", after, 24, text)
        if isinstance(theirs, dict) and isinstance(ours, str):
            continue
        compared += 24
        if ours != theirs:
            wrong.append(f"{text} in {zone} after {after}: {ours} instead of {theirs}")
    node.stdin.close()
    node.wait()
    node.stdout.close()
    return result("cron-parser (npm)", compared, wrong)
