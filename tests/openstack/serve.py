"""serve.py MODULE PORT THREADS: serves MODULE.application on the loopback interface.

Keystone and Placement are WSGI applications without a server of their own.
"""

import importlib
import sys

import waitress

module, port, threads = sys.argv[1:]
# The applications parse sys.argv, so our arguments are removed from it.
sys.argv = sys.argv[:1]
application = importlib.import_module(module).application
waitress.serve(application, host="127.0.0.1", port=int(port), threads=int(threads), channel_timeout=120)
