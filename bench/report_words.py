"""Numbers, tables and dates as docs/benchmarks.md shows them, for report.py and report_pg.py. Not
run by itself."""


def number(value, digits=0):
    if value is None:
        return "–"
    if digits == 0 and 0 < value < 10:
        digits = 1
    return f"{value:,.{digits}f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def figures(results, section):
    return results.get(section, {}).get("figures") or {}


def ratio(value, other):
    return None if not value or not other else value / other


def when(results, section):
    """Where and when a part was measured, in one sentence."""
    machine = results.get(section, {}).get("machine")
    if not machine:
        return "*Not measured yet.*\n"
    turns = len(results[section].get("turns", [])) or 1
    text = (f"{machine['date']}, {machine['cores']} cores ({machine['cpu']}), "
            f"{machine['memory_gib']} GiB, {machine['system']}, Linux {machine['kernel']}, "
            f"{machine['filesystem']}, SQLite {machine['sqlite']}, {machine['perdura']} at "
            f"{machine['commit']}, load {machine['load_before']} before the run; "
            f"{'medians of ' + str(turns) + ' turns' if turns > 1 else 'one turn'}.")
    if machine.get("quick"):
        text += " **A quick trial: these figures are noise.**"
    return text + "\n"
