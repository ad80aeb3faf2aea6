"""The connections that one agent's requests take, by aiohttp, and how its requests are tried."""

from __future__ import annotations

import ast
import asyncio
import base64
import errno
import os
import re
import select
import ssl
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

from yarl import URL

from tui_eval import __version__
from tui_eval.agents.base import AgentError, Pace
from tui_eval.agents.loose_json import one_line
from tui_eval.config.config_values import is_loopback
from tui_eval.guard.fair_share import Lookups, looking_up, seconds_left

# -- aiohttp, imported without the machine's certificate authorities, whose reading takes 40 ms of every start.
#
# It reads them twice while it is imported, for two contexts that serve sessions without one of their own. Here they
# are read when such a context is first used; a run over plain http, or with a context of ours, never does.


def _read_late(context: ssl.SSLContext) -> None:
    """In place of `set_default_verify_paths`: called once something is encrypted with the context."""

    def first(wrap: str) -> Any:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            for own in ("wrap_bio", "wrap_socket"):
                vars(context).pop(own, None)
            context.set_default_verify_paths()
            return getattr(context, wrap)(*arguments, **options)

        return wrapped

    vars(context).update(wrap_bio=first("wrap_bio"), wrap_socket=first("wrap_socket"))


@contextmanager
def authorities_read_late() -> Iterator[None]:
    """Contexts that are made inside trust the same as ever, but read it late."""
    ssl.SSLContext.set_default_verify_paths = _read_late  # type: ignore[method-assign]
    try:
        yield
    finally:
        del ssl.SSLContext.set_default_verify_paths  # it hid that of the class above


with authorities_read_late():
    import aiohttp
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.http_exceptions import HttpProcessingError

# -- Connections that fail, in words; and the proxy that a request goes through.


FAILURES = (aiohttp.ClientError, OSError, TimeoutError)
"""What a connection raises."""
NOT_CONNECTED = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
)
"""There never was one: nothing was sent."""


_QUOTED = r"(?m)b(?:'[^'\n]*'|\"[^\"\n]*\")(?=\s*$|\n)"
"""What aiohttp quotes of an answer that it cannot read."""


def failure_text(error: BaseException, url: str = "") -> str:
    """Why a connection failed, in a few words; with `url`, whom it was to, also whose fault that is where it goes
    through a proxy."""
    proxy = proxy_that_failed(error, url) if url else ""
    return f"{proxy}: {_failure(error)}" if proxy else _failure(error)


_UNKNOWN_AUTHORITY = frozenset({18, 19, 20, 21})
"""What OpenSSL says of a certificate that is its own authority's, or of one that is not known."""


def _failure(error: BaseException) -> str:
    cause = _cause(error)
    if isinstance(cause, aiohttp.ServerDisconnectedError):
        return "the server closed the connection"
    if isinstance(cause, aiohttp.SocketTimeoutError):
        return f"nothing came for {READ_TIMEOUT:.0f} s"
    if isinstance(cause, TimeoutError):
        return "time limit of the connection"
    if isinstance(cause, aiohttp.ClientHttpProxyError):
        return one_line(f"HTTP {cause.status} {cause.message}".rstrip())
    if alert := _tls_alert(cause):
        return f"it refuses TLS: {alert}"
    failed = _failed(cause)
    if isinstance(failed, ssl.SSLCertVerificationError):
        unknown = failed.verify_code in _UNKNOWN_AUTHORITY
        cure = "; SSL_CERT_FILE names a file of the authorities to trust" if unknown else ""
        return one_line(f"its certificate is not trusted: {failed.verify_message}{cure}")
    if isinstance(failed, ssl.SSLError):
        return one_line(f"no TLS: {(failed.reason or str(failed)).replace('_', ' ').lower()}")
    if isinstance(failed, OSError):
        # asyncio's own text hides the reason; numbers below zero are the resolver's.
        number = failed.errno
        said = os.strerror(number).lower() if number and number > 0 else failed.strerror
        return one_line(said or str(failed))
    if (said := _no_http(cause)) is not None:
        return f"no HTTP: {said}"
    if isinstance(cause, aiohttp.ClientPayloadError):
        return "the answer is incomplete"
    return one_line(str(cause)) or type(cause).__name__


def _cause(error: BaseException) -> BaseException:
    return error if isinstance(error, aiohttp.ClientError) else error.__cause__ or error


def _failed(cause: BaseException) -> BaseException:
    return cause.os_error if isinstance(cause, aiohttp.ClientConnectorError) else cause


_ALERT = re.compile(r"\b(?:TLSV1\d*|SSLV3)_(?:ALERT_)?([A-Z][A-Z_]*)\b")
"""An alert of the other side's (RFC 8446 6), as OpenSSL names it."""


def _tls_alert(cause: BaseException) -> str:
    """Why the other side ended TLS, as it says: empty where it did not. One that asks for a certificate may say so
    only once a request is sent; aiohttp makes a system's error of it then, whose number 1 is "operation not
    permitted"."""
    failed = _failed(cause)
    if isinstance(failed, ssl.SSLCertVerificationError) or not isinstance(failed, OSError):
        return ""
    told = failed.strerror or ""
    named = failed.reason if isinstance(failed, ssl.SSLError) else told if told.startswith("[SSL: ") else ""
    alert = _ALERT.search(named or "")
    return alert[1].replace("_", " ").lower() if alert is not None else ""


def stays(error: BaseException) -> bool:
    """Whether it fails however often it is tried: neither a certificate nor whether TLS is spoken is a matter of time,
    nor whom a proxy serves, which may lock out who asks again; and what cannot be read is an answer, which may have
    been paid for. So may one that was waited for in vain."""
    cause = _cause(error)
    if isinstance(cause, aiohttp.SocketTimeoutError):
        return True
    if isinstance(cause, aiohttp.ClientHttpProxyError):
        return 400 <= cause.status < 500 and cause.status not in (408, 429)
    if _tls_alert(cause) not in ("", "internal error"):
        return True
    failed = _failed(cause)
    without_tls = isinstance(failed, ssl.SSLError) and failed.reason == "WRONG_VERSION_NUMBER"
    return without_tls or isinstance(failed, ssl.SSLCertVerificationError) or _no_http(cause) is not None


def proxy_that_failed(error: BaseException, url: str) -> str:
    """The proxy where it was that which could not be reached, or which refused, as `its proxy 127.0.0.1:3128
    (http_proxy)`; else empty."""
    cause = _cause(error)
    if isinstance(cause, aiohttp.ClientHttpProxyError):
        return proxy_to(url)
    if not isinstance(cause, aiohttp.ClientConnectorError):
        return ""
    try:
        meant = URL(url).raw_host or ""
    except ValueError:
        return ""
    host = str(cause.host)
    if not isinstance(cause, aiohttp.ClientProxyConnectionError) and host.lower() == meant.lower():
        return ""
    scheme = url.partition("://")[0]
    at = f"[{host}]" if ":" in host else host
    return f"its proxy {at}:{cause.port} ({_variable(scheme)})"


def proxy_to(url: str) -> str:
    """The proxy through which this is asked for, in words and without who asks it; empty without one."""
    found = proxy_for(url)
    if not found:
        return ""
    at = one_line(found.partition("://")[2].rpartition("@")[2].rstrip("/"), 80)
    return f"its proxy {at} ({_variable(url.partition('://')[0])})"


def refusal(url: str, status: int, why: str) -> str:
    """An answer that is an error, in words: 407 is what a proxy says, not whom it was asked for."""
    if status == 407 and (proxy := proxy_to(url)):
        return f"no answer from {url}: {proxy}: HTTP 407: {why}"
    return f"HTTP {status} from {url}: {why}"


def _variable(scheme: str) -> str:
    """The variable of the environment that names the proxy for URLs of a scheme."""
    return f"{scheme}_proxy" if scheme in urllib.request.getproxies() else "all_proxy"


def _usable(proxy: str, secure: bool) -> URL:
    """A proxy's address. Raises `AgentError` where it is none, or the proxy does not speak HTTP: nothing is
    sent to it."""
    with suppress(ValueError):
        if (found := URL(proxy)).scheme in ("http", "https") and found.host:
            return found
    shown = one_line(proxy.partition("://")[2].rpartition("@")[2] or proxy, 80)
    scheme = proxy.partition("://")[0].lower()
    said = f"its proxy {scheme}://{shown} ({_variable('https' if secure else 'http')}) is no http(s) proxy"
    raise AgentError(said, code="bad-setting", said=said)


def _no_http(error: BaseException) -> str | None:
    """What was answered where it was not HTTP; None where that is not what failed."""
    cause = error.__cause__
    if not (isinstance(error, aiohttp.ClientResponseError) and isinstance(cause, HttpProcessingError)):
        return None
    quoted = re.search(_QUOTED, cause.message)
    if quoted is None:
        return one_line(cause.message)
    return one_line(ast.literal_eval(quoted[0]).decode("utf-8", "replace"), 80)


def place_of(url: str) -> str:
    """Whom a URL means, as short as it can be said: `:8941` on this machine, else the host and its port."""
    host = url.partition("://")[2].partition("/")[0].partition("?")[0].rpartition("@")[2]
    _, colon, port = host.rpartition(":")
    return f":{port}" if colon and port.isdigit() and is_loopback(url) else one_line(host or url, 80)


def unanswered(url: str, error: BaseException) -> AgentError:
    """What it means for an agent that its connection failed."""
    reason, proxy = failure_text(error), proxy_that_failed(error, url)
    cause: BaseException | None = error
    refused = False
    while cause is not None and not refused:
        inner = getattr(cause, "os_error", None)
        refused = isinstance(cause, ConnectionRefusedError) or isinstance(inner, ConnectionRefusedError)
        cause = cause.__cause__ or cause.__context__
    code = "refused" if refused else "unreachable"
    was_there = not isinstance(error, NOT_CONNECTED) and not _tls_alert(_cause(error))
    if was_there and isinstance(
        error, aiohttp.ServerConnectionError | aiohttp.ClientOSError | ConnectionError
    ):
        code = "broke-off"
    if reason.startswith("no HTTP: "):
        code = "unreadable"
    through = f"{proxy}: " if proxy else ""
    return AgentError(
        f"no answer from {url}: {through}{reason}", code=code, said=reason, place=proxy or place_of(url)
    )


def proxy_for(url: str) -> str | None:
    """The proxy that the environment asks for."""
    if is_loopback(url):
        return None
    scheme, _, rest = url.partition("://")
    proxies = urllib.request.getproxies()
    found = proxies.get(scheme) or proxies.get("all")
    if not found:
        return None
    host = rest.partition("/")[0].rpartition("@")[2]
    if urllib.request.proxy_bypass(host):
        return None
    return found if "://" in found else f"http://{found}"


def _basic(user: str, password: str) -> str:
    """The header's value for a user of a proxy."""
    login = f"{user}:{password}"
    try:
        sent = login.encode("latin-1")
    except UnicodeEncodeError:
        sent = login.encode()
    return f"Basic {base64.b64encode(sent).decode()}"


def trusting(authorities: str) -> ssl.SSLContext:
    """A context that trusts these authorities (PEM) and no others.

    Raises:
        ssl.SSLError: they are none.
    """
    return _of_companies(ssl.create_default_context(cadata=authorities))


def _of_companies(context: ssl.SSLContext) -> ssl.SSLContext:
    """Python 3.13 asks for extensions that authorities of a company's own often lack; node and curl do not."""
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def usual_authorities() -> ssl.SSLContext:
    """A context that trusts the authorities which the environment names (`SSL_CERT_FILE`, `SSL_CERT_DIR`), else the
    usual ones and those of `REQUESTS_CA_BUNDLE`, a file or a folder, as of people who use Python's requests. That one
    is for other programs, so it takes nothing away: what cannot be read of it leaves the usual ones.

    Raises:
        AgentError: the file that SSL_CERT_FILE names has none: no server is to blame for that.
    """
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if file or folder:
        try:
            return _of_companies(
                ssl.create_default_context(cafile=file or None, capath=None if file else folder)
            )
        except OSError as error:
            why = "it has no certificate" if isinstance(error, ssl.SSLError) else error.strerror
            said = f"SSL_CERT_FILE: {one_line(file or '')} cannot be read: {why}"
            raise AgentError(said, code="bad-setting", said=said) from None
    import certifi

    context = _of_companies(ssl.create_default_context(cafile=certifi.where()))
    if more := os.environ.get("REQUESTS_CA_BUNDLE"):
        with suppress(OSError):
            context.load_verify_locations(**{"capath" if os.path.isdir(more) else "cafile": more})
    return context


RETRY_STATUS = frozenset({429, 502, 503, 504, 529})
"""Statuses that say "later" rather than "no" (529: Anthropic is overloaded)."""
RETRIES = 3
CONNECT_TIMEOUT = 15.0
READ_TIMEOUT = 600.0
"""Seconds without a byte where no time limit is set."""
READ_AT_ONCE = 1 << 15
"""Bytes that are read of a connection before it is another one's turn."""
HEADER_LIMIT = 1 << 16
"""Bytes of one header of an answer (aiohttp's own limit is an eighth of that; gateways send longer ones)."""
MOST_HEADERS = 1000
"""Headers of an answer. aiohttp takes 128 since it bounds them (3.14), and gateways and proxies add their own."""
MOST_INTERIM = 32
"""Interim answers that may come before one."""


_HEADERS = {"Accept": "*/*", "User-Agent": f"tui-eval/{__version__}", "Accept-Encoding": "identity"}


FRAMING = frozenset({"content-length", "transfer-encoding"})
"""Headers that say where a request ends, which nobody knows before it is sent: copied from another request they cut the
body off, and its rest is taken for the next request."""


_NOT_SENT = FRAMING | {"expect"}
"""Those, and one by which a client waits for a word from the server before it sends its body, as aiohttp does without
end; few servers say it (RFC 9110 10.1.1)."""


def unframed(headers: Mapping[str, str]) -> Mapping[str, str]:
    """The headers without such."""
    if _NOT_SENT.isdisjoint(map(str.lower, headers)):
        return headers
    return {name: value for name, value in headers.items() if name.lower() not in _NOT_SENT}


def without(headers: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    """The headers that are not among the others, which take their place however they are written."""
    taken = {name.lower() for name in others}
    return {name: value for name, value in headers.items() if name.lower() not in taken}


def typed(headers: dict[str, str]) -> dict[str, str]:
    """The headers of a request whose body is JSON, unless they say what it is."""
    known = any(name.lower() == "content-type" for name in headers)
    return headers if known else {**headers, "Content-Type": "application/json"}


_BOUNDS: dict[str, Any] = {"max_line_size": HEADER_LIMIT, "max_field_size": HEADER_LIMIT}
if "max_headers" in aiohttp.ClientSession.__init__.__code__.co_varnames:
    _BOUNDS["max_headers"] = MOST_HEADERS
_NO_TYPE = ("Content-Type",)
_PLACES = 256
"""Hosts of which it is known at once through which proxy they are reached."""
_UNTIL_SILENT = aiohttp.ClientTimeout(sock_connect=CONNECT_TIMEOUT, sock_read=READ_TIMEOUT)
_UNTIL_THE_LIMIT = aiohttp.ClientTimeout(sock_connect=CONNECT_TIMEOUT)


def _timeout() -> aiohttp.ClientTimeout:
    """How long a request may take. Silence is not watched where the attempt has a limit of its own: who gives an agent
    half an hour waits so long for it, and the watch sets a timer anew at each piece of a stream."""
    return _UNTIL_SILENT if seconds_left() is None else _UNTIL_THE_LIMIT


class _Way(NamedTuple):
    """How a host is reached: through which proxy, what that wants with each request over http, with each connection
    over https, and whom to trust (True: whom the connections do)."""

    proxy: URL | None = None
    login: dict[str, str] | None = None
    trusted: ssl.SSLContext | bool = True


class Connections:
    """The connections of one agent. `retry_lost` says whether a request may be sent again when the
    connection broke after it was sent (not where each try is paid for). Each try keeps the `pace`.
    `context` says whom to trust over https, and which certificate to show; `server_name` for which name the
    server's must be, where it is not the URL's."""

    def __init__(
        self,
        *,
        headers: Mapping[str, str] | None = None,
        retries: int | None = None,
        retry_status: frozenset[int] = RETRY_STATUS,
        retry_lost: bool = True,
        pace: Pace | None = None,
        context: ssl.SSLContext | None = None,
        server_name: str | None = None,
    ) -> None:
        given = unframed(headers or {})
        self.headers = {**without(_HEADERS, given), **given}
        self._headers_with_body = typed(self.headers)
        self.retries = RETRIES if retries is None else retries
        self.retry_status = retry_status
        self.retry_lost = retry_lost
        self.pace = pace
        self.server_name = server_name
        self._context = context
        self.sessions: dict[bool, aiohttp.ClientSession] = {}
        """Those that are open, by whether they are for https."""
        self._ways: dict[tuple[str, str], _Way] = {}
        """By scheme and host, each looked up once, since it costs time."""
        self._urls: dict[str, URL] = {}

    def headers_for(self, own: Mapping[str, str] | None, has_body: bool) -> Mapping[str, str]:
        """Those of a request: the agent's, in place of which its `own` stand; a body is JSON unless they say
        otherwise."""
        if not own:
            return self._headers_with_body if has_body else self.headers
        own = unframed(own)
        sent = {**without(self.headers, own), **own}
        return typed(sent) if has_body else sent

    async def request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> aiohttp.ClientResponse:
        """Send a request once; its answer as soon as the headers of it are there.

        Raises:
            AgentError: it is not a URL.
            ValueError, TypeError: this cannot be sent.
            one of `FAILURES`: there is no answer.
        """
        to = self._parsed(url)
        secure = to.scheme == "https"
        session, way = self._session(secure), self._way_to(to)
        login = way.login
        if login and not secure:  # the request is the proxy's own: there is no other to say it with
            headers = {**without(headers, login), **login}
        return await session.request(
            method,
            to,
            headers=headers,
            data=aiohttp.BytesPayload(body) if body else None,
            skip_auto_headers=None if body else _NO_TYPE,
            allow_redirects=False,
            server_hostname=self.server_name if secure else None,
            timeout=_timeout(),
            proxy=way.proxy,
            proxy_headers=login if secure else None,
            ssl=way.trusted,
        )

    def _way_to(self, to: URL) -> _Way:
        """How a request gets there. A request may go elsewhere than the last: an address may be a template, or be
        redirected to."""
        place = to.scheme, to.raw_authority
        way = self._ways.get(place)
        if way is None:
            secure = to.scheme == "https"
            given = proxy_for(f"{to.scheme}://{to.raw_authority}")
            proxy = _usable(given, secure) if given else None
            way = _Way()
            if proxy is not None:
                login = _basic(proxy.user, proxy.password or "") if proxy.user else ""
                # The connections for http have no authorities of their own.
                trusted = usual_authorities() if proxy.scheme == "https" and not secure else True
                way = _Way(proxy.with_user(None), {"Proxy-Authorization": login} if login else None, trusted)
            if len(self._ways) >= _PLACES:
                self._ways.clear()
            self._ways[place] = way
        return way

    def _session(self, secure: bool) -> aiohttp.ClientSession:
        """The connections for https, or for http, made on first use inside the loop that uses them.

        They keep no cookies: an answer to one attempt must not sign in another.
        """
        made = self.sessions.get(secure)
        if made is None:
            # Reading all certificate authorities takes 15 ms, needless for plain http.
            context = self._context or (
                usual_authorities() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            )
            # A connection that the server is about to close takes a request and gives no answer. Where that may not be
            # sent again, each has a connection of its own, as with neuro-san's client.
            kept = {"keepalive_timeout": 60} if self.retry_lost else {"force_close": True}
            made = self.sessions[secure] = aiohttp.ClientSession(
                connector=Connector(limit=0, ssl=context, **kept),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                **_BOUNDS,
            )
            made._retry_connection = False  # how often a request is sent is decided here, a GET's too
        return made

    def _parsed(self, url: str) -> URL:
        """The URL, parsed once."""
        known = self._urls.get(url)
        if known is None:
            try:
                if not url.isprintable():
                    raise ValueError("it has characters that cannot be seen")
                known = URL(url.replace(" ", "%20"))  # yarl would make a plus of it
            except (TypeError, ValueError) as error:
                raise AgentError(
                    f"{one_line(url)} is not a URL: {one_line(str(error))}",
                    code="bad-setting",
                    said=f"{one_line(url)} is not a URL",
                ) from None
            if known.scheme not in ("http", "https") or not known.host:
                raise AgentError(
                    f"{one_line(url)} is not an http(s) URL",
                    code="bad-setting",
                    said=f"{one_line(url)} is not an http(s) URL",
                )
            if len(self._urls) < 64:
                self._urls[url] = known
        return known

    async def close(self) -> None:
        """Close all connections."""
        sessions, self.sessions = list(self.sessions.values()), {}
        for session in sessions:
            await session.close()


def resolver() -> aiohttp.ThreadedResolver:
    """Who looks names up for a connector, whatever loop it runs on."""
    return aiohttp.ThreadedResolver(Lookups())  # type: ignore[arg-type]  # it asks nothing else of its loop


class Connector(aiohttp.TCPConnector):
    """Reads from each connection a little at a time, and bounds what comes before an answer. Several that ask for one
    host name wait for one look-up, which goes on without them: each of them says here that it waited."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, resolver=resolver())
        self._factory = partial(_Arriving, loop=self._loop)

    async def _get(self, key: Any, traces: Any) -> Any:
        """One that is kept and can be used: not where its server has ended it, which the loop may not have
        heard yet, or has said more than was asked: that would be the answer to the next request."""
        kept = self._conns.get(key)
        while kept and (kept[0][0].should_close or not _is_quiet(kept[0][0].transport)):
            protocol, _ = kept.popleft()
            protocol.close()
        return await super()._get(key, traces)

    async def _create_proxy_connection(self, req: Any, traces: Any, timeout: Any) -> Any:
        """One through a proxy, which may accept it and never say more; nothing of the request is sent before
        it does."""
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                return await super()._create_proxy_connection(req, traces, timeout)
        except TimeoutError:
            key = req.connection_key._replace(host=req.proxy.host, port=req.proxy.port)
            late = OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
            raise aiohttp.ClientProxyConnectionError(key, late) from None

    async def _resolve_host(self, host: str, port: int, *more: Any, **options: Any) -> Any:
        with looking_up(host):
            return await super()._resolve_host(host, port, *more, **options)


def _is_quiet(transport: asyncio.BaseTransport | None) -> bool:
    """Whether nothing has come on a connection that nobody waits for: its end, as a rule."""
    socket = transport.get_extra_info("socket") if transport is not None else None
    if socket is None or (number := socket.fileno()) < 0:
        return False
    watching = select.poll()
    watching.register(number, select.POLLIN)
    return not watching.poll(0)


def cut_off(response: aiohttp.ClientResponse) -> ConnectionError | None:
    """What broke the connection in the middle of a body that seems to be whole; None: nothing did."""
    return getattr(getattr(response.content, "_protocol", None), "cut_off", None)


class _Arriving(ResponseHandler):
    """What arrives on a connection. aiohttp bounds the headers of an answer, not the number of interim ones
    (RFC 9110 15.2) that may come before it; and asyncio reads 256 kB at once, which in pieces of a few bytes
    take the loop a fifth of a second."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._interim = 0
        self.cut_off: ConnectionError | None = None
        """What broke the connection within a body."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to read."""
        if hasattr(transport, "max_size"):
            transport.max_size = READ_AT_ONCE  # pyright: ignore[reportAttributeAccessIssue]
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Its end. aiohttp takes it for that of a body without a length, also where the connection was reset."""
        payload = self._payload
        if isinstance(exc, ConnectionError) and payload is not None and not payload.is_eof():
            self.cut_off = exc
        super().connection_lost(exc)

    def feed_data(self, data: Any, size: int = 0) -> None:
        """An answer's beginning."""
        status = getattr(data[0], "code", 200) if isinstance(data, tuple) else 200
        self._interim = self._interim + 1 if 100 <= status < 200 and status != 101 else 0
        if self._interim > MOST_INTERIM:
            if self._interim == MOST_INTERIM + 1:
                if self.transport is not None:
                    self.transport.abort()
                self.set_exception(aiohttp.ClientPayloadError("interim answers without end"))
            return
        super().feed_data(data, size)
