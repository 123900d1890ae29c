"""Recurrences by the letter: the slow way, for oracles.py. It shares nothing with src/calendar: every
day, hour, minute or second of a stretch is looked at, one after the other, and asked whether the
rule (RFC 5545) names it; Python's zoneinfo says what clocks show, and requirement D3 what becomes of
a time that is jumped over or comes twice. Not run by itself."""
import calendar
import datetime
import itertools

WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
UNITS = {"HOURLY": datetime.timedelta(hours=1), "MINUTELY": datetime.timedelta(minutes=1),
         "SECONDLY": datetime.timedelta(seconds=1)}
DAY = datetime.timedelta(days=1)
UTC = datetime.timezone.utc
DAYS_MAX = 2200
UNITS_MAX = 12000


class Rule:
    """What the text says, and what DTSTART says where the text does not."""

    def __init__(self, text, start):
        self.parts = dict(part.split("=") for part in text.split(";"))
        self.start = start
        self.freq = self.parts["FREQ"]
        self.interval = int(self.parts.get("INTERVAL", 1))
        self.week_start = WEEKDAYS.index(self.parts.get("WKST", "MO"))
        self.count = int(self.parts.get("COUNT", 0))
        self.until = self.parts.get("UNTIL")
        self.months, self.month_days = self.numbers("BYMONTH"), self.numbers("BYMONTHDAY")
        self.year_days, self.weeks = self.numbers("BYYEARDAY"), self.numbers("BYWEEKNO")
        self.positions = self.numbers("BYSETPOS")
        self.weekdays = self.parts["BYDAY"].split(",") if "BYDAY" in self.parts else []
        self.fill_days()
        timed = ("SECONDLY", "MINUTELY", "HOURLY")
        self.hours = self.numbers("BYHOUR") or (
            range(24) if self.freq in timed else [start.hour])
        self.minutes = self.numbers("BYMINUTE") or (
            range(60) if self.freq in timed[:2] else [start.minute])
        self.seconds = self.numbers("BYSECOND") or (
            range(60) if self.freq in timed[:1] else [start.second])

    def numbers(self, name):
        return [int(word) for word in self.parts[name].split(",")] if name in self.parts else []

    def fill_days(self):
        if self.weekdays or self.month_days or self.year_days:
            return
        if self.weeks or self.freq == "WEEKLY":
            self.weekdays = [WEEKDAYS[self.start.weekday()]]
        elif self.freq in ("MONTHLY", "YEARLY"):
            self.month_days = [self.start.day]
            if self.freq == "YEARLY" and not self.months:
                self.months = [self.start.month]

    # ---- days ----

    def week_begin(self, day):
        return day - DAY * ((day.weekday() - self.week_start) % 7)

    def week_numbers(self, day):
        """Of the day's week, from both ends of the year that has four days of it at least."""
        def first_week(year):
            begin = self.week_begin(datetime.date(year, 1, 1))
            return begin if (datetime.date(year, 1, 1) - begin).days <= 3 else begin + 7 * DAY
        begin = self.week_begin(day)
        for year in (day.year + 1, day.year, day.year - 1):
            if begin >= first_week(year):
                weeks = (first_week(year + 1) - first_week(year)).days // 7
                number = (begin - first_week(year)).days // 7 + 1
                return number, number - weeks - 1
        raise AssertionError("a week without a year")

    def weekday_passes(self, day):
        if self.freq == "MONTHLY" or self.months:
            first = day.replace(day=1)
            last = day.replace(day=calendar.monthrange(day.year, day.month)[1])
        else:
            first, last = day.replace(month=1, day=1), day.replace(month=12, day=31)
        same = [first + DAY * i for i in range((last - first).days + 1)
                if (first + DAY * i).weekday() == day.weekday()]
        names = {WEEKDAYS[day.weekday()]}
        names |= {f"{n}{WEEKDAYS[day.weekday()]}"
                  for n in (same.index(day) + 1, same.index(day) - len(same))}
        return bool(names & set(self.weekdays))

    def day_passes(self, day):
        length = calendar.monthrange(day.year, day.month)[1]
        year_day = (day - day.replace(month=1, day=1)).days + 1
        year_length = 366 if calendar.isleap(day.year) else 365
        if self.months and day.month not in self.months:
            return False
        if self.month_days and not {day.day, day.day - length - 1} & set(self.month_days):
            return False
        if self.year_days and not {year_day, year_day - year_length - 1} & set(self.year_days):
            return False
        if self.weeks and not set(self.week_numbers(day)) & set(self.weeks):
            return False
        return not self.weekdays or self.weekday_passes(day)

    def period(self, day):
        """A number that is the same for all days of a period and grows by one to the next."""
        if self.freq == "YEARLY":
            return day.year
        if self.freq == "MONTHLY":
            return day.year * 12 + day.month
        if self.freq == "WEEKLY":
            return self.week_begin(day).toordinal() // 7
        return day.toordinal()

    # ---- wall times ----

    def pick(self, times):
        """BYSETPOS of one period's times, which are in order."""
        if not self.positions:
            return times
        places = {place - 1 if place > 0 else len(times) + place for place in self.positions}
        return [times[place] for place in sorted(places) if 0 <= place < len(times)]

    def by_day(self):
        start = self.start.date()
        begin = {"YEARLY": start.replace(month=1, day=1), "MONTHLY": start.replace(day=1),
                 "WEEKLY": self.week_begin(start), "DAILY": start}[self.freq]
        days = (begin + DAY * i for i in range(DAYS_MAX))
        for number, group in itertools.groupby(days, self.period):
            if (number - self.period(start)) % self.interval:
                continue
            times = [datetime.datetime(day.year, day.month, day.day, hour, minute, second)
                     for day in group if self.day_passes(day)
                     for hour in sorted(self.hours) for minute in sorted(self.minutes)
                     for second in sorted(self.seconds)]
            yield from self.pick(times)

    def by_time(self):
        zeros = {"HOURLY": {"minute": 0, "second": 0}, "MINUTELY": {"second": 0}, "SECONDLY": {}}
        at = self.start.replace(**zeros[self.freq])
        for _ in range(UNITS_MAX):
            if at.hour in self.hours and self.day_passes(at.date()):
                minutes = sorted(self.minutes) if self.freq == "HOURLY" else [at.minute]
                seconds = [at.second] if self.freq == "SECONDLY" else sorted(self.seconds)
                yield from self.pick([at.replace(minute=minute, second=second)
                                      for minute in minutes if minute in self.minutes
                                      for second in seconds if second in self.seconds])
            at += UNITS[self.freq] * self.interval

    def horizon(self):
        """Local times before it are all found."""
        if self.freq in UNITS:
            return self.start + UNITS[self.freq] * (self.interval * (UNITS_MAX - 1))
        return self.start + DAY * (DAYS_MAX - 750)

    def wall_times(self):
        times = self.by_time() if self.freq in UNITS else self.by_day()
        return [time for time in times if self.start <= time < self.horizon()]


# ---- instants ----

def instant(moment):
    return int((moment.astimezone(UTC) - datetime.datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())


def offset(zone, at):
    moment = datetime.datetime(1970, 1, 1, tzinfo=UTC) + datetime.timedelta(seconds=at)
    return moment.astimezone(zone).utcoffset()


def showings(zone, local):
    """The instants at which clocks show a time; none when they jump over it, and then the instant
    at which they do as a second result."""
    both = [local.replace(tzinfo=zone, fold=fold) for fold in (0, 1)]
    found = sorted({instant(moment) for moment in both if
                    moment.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == local})
    if found:
        return found, None
    low, high = sorted(instant(moment) for moment in both)
    before = offset(zone, low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if offset(zone, middle) == before else (low, middle)
    return [], high


def instants(text, start, zone, policy):
    """All instants of a rule, in order, and the instant up to which they are all."""
    rule = Rule(text, start)
    found = set()
    for local in rule.wall_times():
        shown, jump = showings(zone, local)
        if rule.freq in UNITS:
            found.update(shown)  # it follows the clock
        elif jump is None:
            found.update(shown if policy == "both" else shown[:1])
        elif policy != "skip":
            found.add(jump)
    shown, jump = showings(zone, start)
    first = jump if jump is not None else shown[0]
    end = instant((rule.horizon() - 2 * DAY).replace(tzinfo=zone))
    kept = sorted(at for at in found if first <= at < end)
    if rule.until:
        until = instant(datetime.datetime.strptime(rule.until, "%Y%m%dT%H%M%S").replace(tzinfo=zone))
        kept = [at for at in kept if at <= until]
        end = min(end, until)
    if rule.count and len(kept) >= rule.count:
        return kept[:rule.count], None
    return kept, end
