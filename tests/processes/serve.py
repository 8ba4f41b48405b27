"""A WSGI application as a program: ``python -m tests.processes.serve MODULE PORT``.

In production, uwsgi or Apache serves the application.
"""

import importlib
import sys
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Handler(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Write no log of requests: the application writes its own."""


if __name__ == "__main__":
    module, port = sys.argv[1:]
    sys.argv[1:] = []  # Nova reads them when it is imported
    application = importlib.import_module(module).application
    make_server("127.0.0.1", int(port), application, Server, Handler).serve_forever()
