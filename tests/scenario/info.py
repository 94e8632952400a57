# SPDX-License-Identifier: BSD-3-Clause
"""Aim: `quoit info` and SHMEM_INFO describe the machine and the job. Method: text and JSON of the command must agree
with each other, with this machine and with the ring's geometry; a job prints the same table with its own transports."""
import json
import os
import re
import subprocess

import scenario

QUOIT = os.path.join(os.path.dirname(scenario.OSHRUN), "quoit")
GREET = scenario.program("scenario_greet")


def run(*arguments, **environment):
    return subprocess.run([QUOIT, "info", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, env={**os.environ, **environment})


def rows(text):
    """{section: {name: rest of the line}} of the text form."""
    found, section = {}, None
    for line in text.splitlines():
        match = re.match(r"  (\S+(?: \S+)*) {2,}(.*)|  (.{27}) (.*)", line)
        if line and not line.startswith(" "):
            section = found.setdefault(line, {})
        elif match:
            section[match[1] or match[3].strip()] = match[2] if match[1] else match[4]
    return found


class Info(scenario.Case):
    def test_json_and_text(self):
        answer = json.loads(run("--json", "--hosts", 5, "-n", 10, QUOIT_SLOTS="8").stdout)
        text = rows(run("--hosts", 5, "-n", 10, QUOIT_SLOTS="8").stdout)
        self.assertEqual(list(answer), list(text))
        for section in answer:
            self.assertEqual(list(answer[section]), list(text[section]), section)
        self.assertEqual(answer["machine"]["processors allowed"], len(os.sched_getaffinity(0)))
        options = answer["options"]
        self.assertEqual((options["QUOIT_SLOTS"]["value"], options["QUOIT_SLOTS"]["source"]), ("8", "environment"))
        self.assertEqual((options["QUOIT_HOSTS"]["value"], options["QUOIT_HOSTS"]["source"]), ("5", "command line"))
        self.assertEqual(options["QUOIT_CHUNK"]["source"], "default")
        self.assertIn("8 ", text["options"]["QUOIT_SLOTS"])

    def test_ways(self):
        for hosts, pes in ((1, 4), (2, 5), (5, 10), (6, 6)):
            transports = json.loads(run("--json", "--hosts", hosts, "-n", pes).stdout)["transports"]
            told = {}
            for name, way in transports.items():
                match = re.fullmatch(r"to PE (\d+)(?:\.\.(\d+))?", name)
                if match:
                    told.update({pe: way for pe in range(int(match[1]), int(match[2] or match[1]) + 1)})
            self.assertEqual(sorted(told), list(range(pes)))
            host_of = [host for host in range(hosts) for _ in range(pes // hosts + (host < pes % hosts))]
            for pe, way in told.items():
                hops = min(host_of[pe], hosts - host_of[pe]) if host_of[pe] else 0
                self.assertTrue(way.startswith(["local", "direct", "relayed"][min(hops, 2)]), (hosts, pe, way))
                if hops > 1:
                    self.assertIn(f"{hops} hops", way)

    def test_wrong(self):
        for arguments in (["--lanes"], ["--lanes", "x"], ["--nothing"], ["word"], ["--hosts", 3, "-n", 2]):
            result = run(*arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
            self.assertTrue(result.stderr.startswith("quoit info: "), result.stderr)

    def test_job(self):
        result = self.run_job("-x", "SHMEM_INFO=1", "--hosts", 3, "-n", 3, GREET)
        self.assertEqual(result.status, 0, result)
        told = rows(result.out[:result.out.index("hello")] if result.out.startswith("version") else result.out)
        self.assertEqual(told["transports"]["PEs"], "3", result)
        self.assertIn("to PE 1", told["transports"], result)
        self.assertIn("environment", told["options"]["SHMEM_INFO"], result)


if __name__ == "__main__":
    scenario.main()
