"""The socket by which Spark calls back into the driver's Python: only Spark's own Java gets an answer there.

py4j gives it no token of its own accord: Python asks for none, and Java forgets the one it has as soon as
it is told the port. So both are told here, before anybody calls back. Java's client has to be put in place
by reflection, for py4j has no other way to give it a token.
"""

from typing import Any

_REST_S = 30  # as py4j has it, between two looks for connections nobody uses
_FOR_EVER = 0


def guard_callbacks(gateway: Any) -> None:
    """Of the driver's Java, before anything is called back; harmless where it is done already."""
    if gateway.__dict__.get("_callback_server") is not None:
        return
    parameters = gateway.callback_server_parameters
    parameters.auth_token = gateway.gateway_parameters.auth_token
    parameters.port = 0
    parameters.eager_load = parameters.daemonize = parameters.daemonize_connections = True
    gateway.start_callback_server(parameters)
    server = gateway.get_callback_server()
    port = server.server_socket.getsockname()[1]
    server.port = gateway._python_proxy_port = port  # where pyspark looks for it
    _tell_java(gateway, port, parameters.auth_token)


def _tell_java(gateway: Any, port: int, token: str) -> None:
    from py4j.java_gateway import JavaObject

    java = gateway.jvm
    there = JavaObject("GATEWAY_SERVER", gateway._gateway_client).getGateway()
    before = there.getCallbackClient()
    address = before.getAddress()
    client = java.py4j.PythonClient(
        there,
        None,
        port,
        address,
        _REST_S,
        java.java.util.concurrent.TimeUnit.SECONDS,
        java.javax.net.SocketFactory.getDefault(),
        before.getJavaServer(),
        True,
        _FOR_EVER,
        token,
    )
    field = java.java.lang.Class.forName("py4j.Gateway").getDeclaredField("cbClient")
    field.setAccessible(True)
    field.set(there, client)
    before.shutdown()
