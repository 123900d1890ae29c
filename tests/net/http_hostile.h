/* Requests that must be refused with a status and a closed connection (F-H4, F-K4, RFC 9112), fed
 * to the parser alone by http_parse_test.c and to a real server by http_test.c. */
#ifndef TESTS_HTTP_HOSTILE_H
#define TESTS_HTTP_HOSTILE_H

struct hostile {
    const char *what;
    const char *request;
    int status;
};

#define POST_HEAD "POST /echo HTTP/1.1\r\nHost: a\r\n"
#define CHUNKED POST_HEAD "Transfer-Encoding: chunked\r\n\r\n"

static const struct hostile hostile_requests[] = {
    /* F-H4: lengths. */
    {"2^63", POST_HEAD "Content-Length: 9223372036854775808\r\n\r\nabc", 413},
    {"2^63-1", POST_HEAD "Content-Length: 9223372036854775807\r\n\r\nabc", 413},
    {"2^64", POST_HEAD "Content-Length: 18446744073709551616\r\n\r\nabc", 413},
    {"2^64+5", POST_HEAD "Content-Length: 18446744073709551621\r\n\r\nabcde", 413},
    {"forty digits", POST_HEAD "Content-Length: 1000000000000000000000000000000000000000\r\n\r\n",
     413},
    {"one above the limit", POST_HEAD "Content-Length: 1048577\r\n\r\n", 413},
    {"negative", POST_HEAD "Content-Length: -1\r\n\r\nabc", 400},
    {"list", POST_HEAD "Content-Length: 1,2\r\n\r\nabc", 400},
    {"list of equals", POST_HEAD "Content-Length: 3, 3\r\n\r\nabc", 400},
    {"plus", POST_HEAD "Content-Length: +5\r\n\r\nabcde", 400},
    {"hexadecimal", POST_HEAD "Content-Length: 0x5\r\n\r\nabcde", 400},
    {"empty", POST_HEAD "Content-Length:\r\n\r\nabc", 400},
    {"blank inside", POST_HEAD "Content-Length: 1 2\r\n\r\nabc", 400},
    {"exponent", POST_HEAD "Content-Length: 1e3\r\n\r\nabc", 400},
    {"word", POST_HEAD "Content-Length: abc\r\n\r\nabc", 400},
    {"two equal", POST_HEAD "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400},
    {"two different", POST_HEAD "Content-Length: 3\r\ncontent-length: 4\r\n\r\nabcd", 400},
    /* F-K4: framing that two programs could read differently. */
    {"CL and TE",
     POST_HEAD "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {"TE and CL",
     POST_HEAD "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400},
    {"two TE", POST_HEAD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {"TE identity", POST_HEAD "Transfer-Encoding: identity\r\n\r\n", 400},
    {"TE gzip, chunked", POST_HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n", 400},
    {"TE chunked, chunked", POST_HEAD "Transfer-Encoding: chunked, chunked\r\n\r\n", 400},
    {"TE chunked, gzip", POST_HEAD "Transfer-Encoding: chunked, gzip\r\n\r\n", 400},
    {"TE xchunked", POST_HEAD "Transfer-Encoding: xchunked\r\n\r\n", 400},
    {"TE quoted", POST_HEAD "Transfer-Encoding: \"chunked\"\r\n\r\n", 400},
    {"TE with a vertical tab", POST_HEAD "Transfer-Encoding: \vchunked\r\n\r\n", 400},
    {"TE with a parameter", POST_HEAD "Transfer-Encoding: chunked;q=1\r\n\r\n", 400},
    {"TE empty", POST_HEAD "Transfer-Encoding:\r\n\r\n", 400},
    {"blank before colon", POST_HEAD "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400},
    {"tab before colon", POST_HEAD "Content-Length\t: 3\r\n\r\nabc", 400},
    {"TE in HTTP/1.0", "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {"folded line", POST_HEAD "X-A: 1\r\n 2\r\n\r\n", 400},
    {"folded with tab", POST_HEAD "X-A: 1\r\n\tTransfer-Encoding: chunked\r\n\r\n", 400},
    {"fold before the first header", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400},
    {"bare LF everywhere", "GET / HTTP/1.1\nHost: a\n\n", 400},
    {"bare LF in one header", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400},
    {"bare LF at the end", "GET / HTTP/1.1\r\nHost: a\r\n\n", 400},
    {"bare CR in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: b\rContent-Length: 3\r\n\r\n", 400},
    {"bare CR in a name", "GET / HTTP/1.1\r\nHost: a\r\nX\r: b\r\n\r\n", 400},
    {"CR CR LF", "GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", 400},
    {"bare CR in the request line", "GET /\rx HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"control character in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: a\001b\r\n\r\n", 400},
    {"DEL in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: a\177b\r\n\r\n", 400},
    {"header without colon", "GET / HTTP/1.1\r\nHost: a\r\nNonsense\r\n\r\n", 400},
    {"header without name", "GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n", 400},
    {"header name in parentheses", "GET / HTTP/1.1\r\nHost: a\r\n(X): x\r\n\r\n", 400},
    {"non-ASCII header name", "GET / HTTP/1.1\r\nHost: a\r\nX\xC3\xA4: x\r\n\r\n", 400},
    /* Chunks. */
    {"chunk size overflow", CHUNKED "FFFFFFFFFFFFFFFFF\r\nabc", 400},
    {"chunk size 2^64+5", CHUNKED "10000000000000005\r\nabcde\r\n0\r\n\r\n", 400},
    {"chunk size of endless zeros", CHUNKED "00000000000000000005\r\nabcde\r\n0\r\n\r\n", 400},
    {"chunk above the limit", CHUNKED "100001\r\nabc", 413},
    {"chunk far above the limit", CHUNKED "7fffffffffffff\r\nabc", 413},
    {"chunk size negative", CHUNKED "-5\r\nabcde\r\n0\r\n\r\n", 400},
    {"chunk size plus", CHUNKED "+5\r\nabcde\r\n0\r\n\r\n", 400},
    {"chunk size 0x5", CHUNKED "0x5\r\nabcde\r\n0\r\n\r\n", 400},
    {"chunk size empty", CHUNKED "\r\nabcde\r\n0\r\n\r\n", 400},
    {"blank after chunk size", CHUNKED "5 \r\nabcde\r\n0\r\n\r\n", 400},
    {"blank before chunk size", CHUNKED " 5\r\nabcde\r\n0\r\n\r\n", 400},
    {"bare LF after chunk size", CHUNKED "5\nabcde\r\n0\r\n\r\n", 400},
    {"bare CR after chunk size", CHUNKED "5\rabcde\r\n0\r\n\r\n", 400},
    {"bare LF in an extension", CHUNKED "5;a\nabcde\r\n0\r\n\r\n", 400},
    {"chunk longer than its size", CHUNKED "5\r\nabcdef\r\n0\r\n\r\n", 400},
    {"bare LF after chunk data", CHUNKED "5\r\nabcde\n0\r\n\r\n", 400},
    {"bare LF after last chunk", CHUNKED "0\r\n\n", 400},
    {"folded trailer", CHUNKED "0\r\n X: a\r\n\r\n", 400},
    {"blank before trailer colon", CHUNKED "0\r\nX : a\r\n\r\n", 400},
    {"trailer without colon", CHUNKED "0\r\nX\r\n\r\n", 400},
    {"bare LF in a trailer", CHUNKED "0\r\nX: a\n\r\n", 400},
    {"bare CR in a trailer", CHUNKED "0\r\nX: a\rb\r\n\r\n", 400},
    /* Request lines and hosts. */
    {"no Host", "GET / HTTP/1.1\r\n\r\n", 400},
    {"two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
    {"Host with a slash", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
    {"Host with a user", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", 400},
    {"list of hosts", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 400},
    {"two hosts in one", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
    {"two Authorizations", "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: a\r\nauthorization: b\r\n"
     "\r\n", 400},
    {"HTTP/0.9", "GET /\r\n\r\n", 400},
    {"HTTP/2.0", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 400},
    {"HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", 400},
    {"HTTP/1.1 in small letters", "GET / http/1.1\r\nHost: a\r\n\r\n", 400},
    {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
    {"two blanks behind the method", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"two blanks before the version", "GET /  HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"blank inside the target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"tab in the request line", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"blank behind the version", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400},
    {"blank before the method", " GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"non-ASCII target", "GET /\xC3\xA4 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"fragment", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"relative target", "GET a HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"asterisk for GET", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"foreign scheme", "GET ftp://a/b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"absolute target without host", "GET http:///b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"user in the target", "GET http://u@a/b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"CONNECT", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"unknown method", "BREW /pot HTTP/1.1\r\nHost: a\r\n\r\n", 405},
    {"tab behind the length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\t\r\n\r\na", 400},
    {"tab behind the coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\t\r\n\r\n"
                              "0\r\n\r\n", 400},
    {"method in small letters", "get / HTTP/1.1\r\nHost: a\r\n\r\n", 405},
    {"TLS hello", "\x16\x03\x01\x02", 400},
    {"many empty lines", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"bare LF first", "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
};

#define HOSTILE_COUNT (sizeof hostile_requests / sizeof hostile_requests[0])
#define HOSTILE_BODY_BYTES_MAX (1024 * 1024) /* the body limit the table is written for */

#endif
