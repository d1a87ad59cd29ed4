"""docs/tutorial.md: every command runs, and prints what the page shows."""

import re

from support.tutorial import PAGE, on_server, run, steps, write_files


def test_every_command_prints_what_the_page_shows(tmp_path):
    write_files(tmp_path)
    done = 0
    for step in steps():
        printed = [line.rstrip() for line in run(step.command, tmp_path).splitlines()]
        for line in step.shown:
            assert line.rstrip() in printed, (step.command, line, printed)
            del printed[: printed.index(line.rstrip()) + 1]
        done += 1
    assert done == 6


def test_the_commands_for_a_server_are_those_run_before_with_its_address():
    shown = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[-1].splitlines()
    commands = [step.command for step in steps()]
    for line in shown:
        local = line.replace(" --engine http://localhost:9200", "").replace(
            "http://localhost:9200", ".shinglefold"
        )
        assert any(command.startswith(local) for command in commands), line
        assert on_server(local, "http://localhost:9200") == line
