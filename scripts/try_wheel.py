"""Install the wheel in an environment of its own and use it outside the checkout.

    python scripts/try_wheel.py FOLDER_OF_THE_WHEEL FOLDER_TO_WORK_IN

The environment sees the packages of this one, so that only the wheel itself is installed; it must be found in the
environment and hold its data files. Links a question on a database that is made here.
"""

import json
import os
import sqlite3
import subprocess
import sys
import venv
from contextlib import closing
from pathlib import Path

TABLES = """
create table customers (id integer primary key, name text);
create table products (id integer primary key, title text);
create table orders (customer_id integer references customers (id), product_id integer references products (id));
"""


def main(dist: Path, work: Path) -> None:
    """Command line."""
    (wheel,) = dist.glob("*.whl")
    (_,) = dist.glob("*.tar.gz")
    work = work.resolve()
    venv.create(work / "env", with_pip=False, clear=True)
    site = next((work / "env" / "lib").glob("python*")) / "site-packages"
    # Libraries come from this environment, the package does not: its editable install is a path file that is not read.
    (site / "libraries.pth").write_text(f"{next(Path(sys.prefix).glob('lib/python*/site-packages'))}\n")
    install = ["pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(site), str(wheel)]
    subprocess.run([sys.executable, "-m", *install], check=True)
    with closing(sqlite3.connect(work / "shop.sqlite")) as connection:
        connection.executescript(TABLES)
    python = work / "env" / "bin" / "python"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    run = {"cwd": work, "env": environment, "check": True, "capture_output": True, "text": True}
    where = subprocess.run([python, "-c", "import bayeslink; print(bayeslink.__file__)"], **run).stdout.strip()
    if not Path(where).is_relative_to(site):
        raise RuntimeError(f"the package was imported from {where}, not from the wheel")
    question = "Which customers ordered which products?"
    command = [python, "-m", "bayeslink", "link", "shop.sqlite", question, "--channels", "lexical", "--json"]
    found = json.loads(subprocess.run(command, **run).stdout)
    print(f"{wheel.name}: {found['posterior']}; cover {', '.join(found['cover']['tables'])}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
