"""A night on every partition of a cluster: reframe -c results/nightly/night_check.py -r

The site's own configuration of ReFrame says how jobs start; with none it runs here, without Slurm.
What is left is what nightly.py leaves anywhere; ReFrame gets the median of every row besides.
"""

# ruff: noqa: RUF012 (class attributes are how ReFrame's tests say what they are)

import json
from pathlib import Path
from statistics import median

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_after, run_before, sanity_function

REPOSITORY = Path(__file__).resolve().parents[2]


@rfm.simple_test
class Night(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    exclusive_access = True
    time_limit = "2h"
    prerun_cmds = [f"cd {REPOSITORY}"]
    executable = "tools/nightly.py"

    @run_after("setup")
    def name_the_machine(self):
        self.machine = self.current_partition.fullname.replace(":", "-")
        self.executable_opts = ["--config", "results/nightly/night.toml", "--machine", self.machine]

    @sanity_function
    def nothing_is_slower_for_good(self):
        return sn.assert_eq(self.job.exitcode, 0)

    @run_before("performance")
    def read_the_night(self):
        night = max((REPOSITORY / "results" / self.machine).glob("*_*[0-9a-f]"))
        times = {}
        for file in night.glob("*.json"):
            for row in json.loads(file.read_text())["benchmarks"]:
                if row["run_type"] == "iteration" and not row.get("error_occurred"):
                    name = row["run_name"].replace(":", "=")  # a colon would end its first part
                    times.setdefault((name, row["time_unit"]), []).append(row["real_time"])
        self.perf_variables = {
            name: sn.make_performance_function(sn.defer(median(values)), unit)
            for (name, unit), values in times.items()
        }
