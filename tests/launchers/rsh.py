# SPDX-License-Identifier: BSD-3-Clause
"""A remote shell for the tests, without keys: `rsh.py serve ADDRESS` on a host, `rsh.py HOST COMMAND...` elsewhere. The command's
standard input and output are the connection, as of rshd; its environment has the caller's SCENARIO_MARK."""
import json
import os
import socket
import subprocess
import sys
import threading

PORT = 5140


def serve(address):
    server = socket.create_server((address, PORT))
    print("ready", flush=True)
    while True:
        connection, _ = server.accept()
        wanted = json.loads(connection.makefile("rb", buffering=0).readline())
        environment = {**os.environ, "SCENARIO_MARK": wanted["mark"]}
        child = subprocess.Popen(wanted["command"], stdin=connection, stdout=connection, env=environment)
        connection.close()
        threading.Thread(target=child.wait, daemon=True).start()


def call(host, command):
    connection = socket.create_connection((host, PORT), timeout=60)
    connection.settimeout(None)
    connection.sendall(json.dumps({"command": command, "mark": os.environ.get("SCENARIO_MARK", "")}).encode() + b"\n")

    def feed():
        try:
            while data := os.read(0, 65536):
                connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError: # the command has ended
            pass

    threading.Thread(target=feed, daemon=True).start()
    try:
        while data := connection.recv(65536):
            while data:
                data = data[os.write(1, data):]
    except ConnectionResetError: # it ended before it had read all of its input; what it wrote has been received before
        pass
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        call(sys.argv[1], sys.argv[2:])
