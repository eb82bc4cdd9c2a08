# SPDX-License-Identifier: Apache-2.0
"""A server in a container without a policy: it answers whoever connects, and says so."""

import http.server


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print("request", self.path, flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("", 8000), Handler)
print("ready", flush=True)
server.serve_forever()
