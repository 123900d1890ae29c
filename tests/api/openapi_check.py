"""Is an answer what openapi.json says? check() takes the schemas as closed: a property that the document does not name
is a problem, also where the document forgot to say so. Standard library only; every schema becomes a function once,
because the tests ask some hundred thousand times.

    problems = openapi_check.check("GET", "/v1/tasks?limit=1", 200, reply.json)
    self.assertEqual(problems, [])

body: what json.loads gave; bytes or text of an answer that is no JSON; None where there was no body.

check_request() says the same of a request that the server took: what it takes must be in the document."""
import functools
import json
import pathlib
import re
import reprlib
import urllib.parse

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "src/server/assets/openapi.json"
METHODS = ("get", "put", "post", "delete", "patch", "options", "head")
SAYS_NOTHING = {"description", "default", "example", "examples", "title", "deprecated", "readOnly", "writeOnly",
                "contentMediaType", "contentEncoding", "discriminator", "$comment"}
RULES = {"type", "enum", "const", "$ref", "oneOf", "anyOf", "allOf", "properties", "required", "additionalProperties",
         "patternProperties", "propertyNames", "minProperties", "maxProperties", "items", "minItems", "maxItems",
         "uniqueItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
         "maxLength", "pattern", "format", "dependentRequired", "not", "x-max-bytes"}
FORMATS = {
    "uuid": re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z"),
    "date-time": re.compile(r"\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\d(\.\d+)?(Z|[+-]\d\d:\d\d)\Z"),
    "date": re.compile(r"\d{4}-[01]\d-[0-3]\d\Z"),
    "uri": re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+\Z"),
}
ANY_TYPE = frozenset(("null", "boolean", "integer", "number", "string", "array", "object"))
PROBLEMS_MAX = 20  # of one answer
ITEMS_CHECKED = 100  # of one list, about
ANYWHERE = (408, 431)  # before a request has an operation
ELSEWHERE = (400, 401, 403, 404, 405, 422, 429, *ANYWHERE)  # for paths and methods that are not there


def type_of(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return {int: "integer", float: "number", str: "string", list: "array", dict: "object"}[type(value)]


def is_type(value, wanted):
    actual = type_of(value)
    if actual in wanted:
        return True
    if actual == "integer":
        return "number" in wanted
    return actual == "number" and "integer" in wanted and value.is_integer()


class Document:
    """One OpenAPI document; schemas are compiled as they are met."""

    def __init__(self, document):
        self.document = document
        self.compiled = {}
        paths = sorted(document["paths"], key=lambda p: -len(re.sub(r"\{[^}]*\}", "", p)))
        self.paths = [(re.compile("[^/]+".join(re.escape(p) for p in re.split(r"\{[^}]*\}", path)) + r"\Z"), path)
                      for path in paths]

    def resolve(self, thing):
        while "$ref" in thing:
            reference, thing = thing["$ref"], self.document
            for part in reference.lstrip("#/").split("/"):
                thing = thing[part.replace("~1", "/").replace("~0", "~")]
        return thing

    @functools.lru_cache(maxsize=4096)
    def template(self, path):
        """The path of the document that an address belongs to, or None."""
        path = path.partition("?")[0]
        return next((template for shape, template in self.paths if shape.match(path)), None)

    def operation(self, method, path):
        template = self.template(path)
        return self.document["paths"][template].get(method.lower()) if template else None

    def request_schema(self, method, path):
        """Of a JSON body, or None where the operation takes none."""
        body = self.resolve((self.operation(method, path) or {}).get("requestBody", {}))
        return body.get("content", {}).get("application/json", {}).get("schema")

    # Schemas become functions (value, problems) -> None. A function that looks inside a value puts
    # the path before what it found: this costs nothing when nothing is found.

    def rule(self, schema):
        known = self.compiled.get(id(schema))
        if known is None:
            # A schema may refer to itself: what is compiled meanwhile looks the function up when it is called.
            box = []
            self.compiled[id(schema)] = (lambda *a: box[0](*a), schema)
            box.append(self.compile(schema))
            known = self.compiled[id(schema)] = (box[0], schema)
        return known[0]

    def compile(self, schema):
        if schema is True or schema == {}:
            return lambda value, problems: None
        if schema is False:
            return lambda value, problems: problems.append(f": must not be there")
        unknown = set(schema) - RULES - SAYS_NOTHING
        if unknown:
            raise ValueError(f"openapi_check does not know {sorted(unknown)}")
        checks = []
        if "$ref" in schema:
            checks.append(self.rule(self.resolve({"$ref": schema["$ref"]})))
        if "allOf" in schema:
            checks += self.compile_all(schema)
        elif {"properties", "additionalProperties", "patternProperties"} & set(schema):
            checks.append(self.compile_object(schema))
        checks += self.compile_choices(schema)
        checks += self.compile_scalars(schema)
        checks += self.compile_sizes(schema)
        if "type" not in schema:
            return checks[0] if len(checks) == 1 else sequence(checks)
        wanted = frozenset([schema["type"]] if isinstance(schema["type"], str) else schema["type"])
        exact = {t: kind for t, kind in ((str, "string"), (type(None), "null"), (bool, "boolean"), (int, "integer"),
                                         (dict, "object"), (list, "array")) if kind in wanted}

        def wrong(value, problems):
            problems.append(f": is {type_of(value)} {short(value)}, not {' or '.join(sorted(wanted))}")

        def typed(value, problems):
            if type(value) not in exact and not is_type(value, wanted):
                wrong(value, problems)
                return
            for check in checks:
                check(value, problems)

        def only_typed(value, problems):
            if type(value) not in exact and not is_type(value, wanted):
                wrong(value, problems)
        typed = typed if checks else only_typed
        typed.wanted = wanted
        return typed

    def compile_all(self, schema):
        """allOf is closed over what all of them name together."""
        merged = {"properties": {}, "required": []}
        rest = []
        for part in [*schema["allOf"], {k: v for k, v in schema.items() if k in ("properties", "required")}]:
            part = self.flatten(part)
            merged["properties"].update(part.get("properties", {}))
            merged["required"] += part.get("required", [])
            if "additionalProperties" in part and part["additionalProperties"] is not False:
                merged["additionalProperties"] = part["additionalProperties"]
            rest.append({k: v for k, v in part.items()
                         if k not in ("properties", "required", "additionalProperties")})
        self.compiled[id(merged)] = (None, merged)  # keeps it alive: ids of objects are the keys
        rules = [self.compile_object(merged)] if merged["properties"] else []
        return rules + [self.compile(r) for r in rest if set(r) - SAYS_NOTHING]

    def flatten(self, schema):
        schema = self.resolve(schema)
        if "allOf" not in schema:
            return schema
        out = {k: v for k, v in schema.items() if k not in ("allOf", "properties", "required")}
        out["properties"], out["required"] = {}, []
        for part in [*schema["allOf"], {k: v for k, v in schema.items() if k in ("properties", "required")}]:
            part = self.flatten(part)
            out["properties"].update(part.get("properties", {}))
            out["required"] += part.get("required", [])
        return out

    def compile_object(self, schema):
        rules = {name: self.rule(inner) for name, inner in schema.get("properties", {}).items()}
        patterns = [(re.compile(p), self.rule(inner)) for p, inner in schema.get("patternProperties", {}).items()]
        rest = schema.get("additionalProperties", False)
        rest = self.rule(rest) if rest is not False else None
        required = schema.get("required", [])
        known = rules.get

        def check(value, problems):
            if type(value) is not dict:
                return
            for name, inner in value.items():
                rule = known(name) or next((r for p, r in patterns if p.search(name)), rest)
                if rule is None:
                    problems.append(f": has '{name}', which the document does not name")
                else:
                    count = len(problems)
                    rule(inner, problems)
                    if len(problems) > count:
                        prefix(problems, count, name)
            for name in required:
                if name not in value:
                    problems.append(f": lacks '{name}'")
        return check

    def compile_choices(self, schema):
        checks = []
        for word in ("oneOf", "anyOf"):
            if word in schema:
                rules = [self.rule(inner) for inner in schema[word]]
                checks.append(chooser(word, rules))
        if "not" in schema:
            rule = self.rule(schema["not"])

            def excluded(value, problems):
                if not fails(rule, value):
                    problems.append(f": is what it must not be")
            checks.append(excluded)
        if "enum" in schema or "const" in schema:
            values = schema.get("enum", [schema.get("const")])

            texts = frozenset(v for v in values if type(v) is str)

            def listed(value, problems):
                if type(value) is str and value in texts:
                    return
                if not any(value == v and type_of(value) == type_of(v) for v in values):
                    problems.append(f": {short(value)} is none of {values}")
            checks.append(listed)
        return checks

    def compile_scalars(self, schema):
        checks = []
        bounds = [(w, f) for w, f in (("minimum", lambda v, b: v >= b), ("maximum", lambda v, b: v <= b),
                                      ("exclusiveMinimum", lambda v, b: v > b),
                                      ("exclusiveMaximum", lambda v, b: v < b),
                                      ("multipleOf", lambda v, b: v % b == 0)) if w in schema]
        for word, holds in bounds:
            def bounded(value, problems, word=word, holds=holds, bound=schema[word]):
                if type(value) in (int, float) and not holds(value, bound):
                    problems.append(f": {value} breaks {word} {bound}")
            checks.append(bounded)
        shape = FORMATS.get(schema.get("format"))
        if shape:
            def formed(value, problems):
                if type(value) is str and not shape.match(value):
                    problems.append(f": {short(value)} is no {schema['format']}")
            checks.append(formed)
        if "pattern" in schema:
            pattern = re.compile(schema["pattern"])

            def patterned(value, problems):
                if type(value) is str and not pattern.search(value):
                    problems.append(f": {short(value)} does not fit {schema['pattern']}")
            checks.append(patterned)
        return checks

    def compile_sizes(self, schema):
        checks = []
        sizes = (("minLength", str, 1), ("maxLength", str, -1), ("minItems", list, 1), ("maxItems", list, -1),
                 ("minProperties", dict, 1), ("maxProperties", dict, -1))
        for word, kind, sign in sizes:
            if word in schema:
                def sized(value, problems, word=word, kind=kind, sign=sign, bound=schema[word]):
                    if type(value) is kind and (len(value) - bound) * sign < 0:
                        problems.append(f": its length {len(value)} breaks {word} {bound}")
                checks.append(sized)
        if "x-max-bytes" in schema:
            def weighed(value, problems, bound=schema["x-max-bytes"]):
                if type(value) is str and len(value.encode()) > bound:
                    problems.append(f": its {len(value.encode())} bytes break x-max-bytes {bound}")
            checks.append(weighed)
        if "items" in schema:
            item = self.rule(schema["items"])

            def each(value, problems):
                if type(value) is list:
                    step = len(value) // ITEMS_CHECKED + 1  # of thousands some: tests have other work to do
                    for index in range(0, len(value), step):
                        count = len(problems)
                        item(value[index], problems)
                        if len(problems) > count:
                            prefix(problems, count, index)
            checks.append(each)
        if schema.get("uniqueItems"):
            def unique(value, problems):
                if type(value) is list and len({json.dumps(v, sort_keys=True) for v in value}) < len(value):
                    problems.append(f": has the same item twice")
            checks.append(unique)
        if "propertyNames" in schema:
            name_rule = self.rule(schema["propertyNames"])

            def named(value, problems):
                for name in value if type(value) is dict else ():
                    count = len(problems)
                    name_rule(name, problems)
                    prefix(problems, count, name)
            checks.append(named)
        return checks

    def problems(self, schema, value, where=""):
        """What of the value is not as the schema says: sentences, none if all is right."""
        found = []
        self.rule(schema)(value, found)
        return [(where or "the body") + problem for problem in found[:PROBLEMS_MAX]]

    def check(self, method, path, status, body):
        where = f"{method} {path} {status}"
        template = self.template(path)
        operation = self.operation(method, path)
        if operation is None and method == "HEAD":
            operation, body = self.operation("GET", path), None
        if operation is None or status in ANYWHERE:
            if status not in ELSEWHERE:
                return [f"{where}: the document does not know this {'method' if template else 'path'}"]
            return [] if method == "HEAD" else self.problems({"$ref": "#/components/schemas/Error"}, body)
        answer = operation["responses"].get(str(status)) or operation["responses"].get(f"{status // 100}XX") \
            or operation["responses"].get("default")
        if answer is None:
            return [f"{where}: {template} does not name the status {status} ({short(body)})"]
        content = self.resolve(answer).get("content")
        if method == "HEAD":
            return []
        if not content:
            return [f"{where}: has a body, the document names none"] if body not in (None, b"", "") else []
        if isinstance(body, bytes) or (isinstance(body, str) and "application/json" not in content):
            return [] if set(content) - {"application/json"} else [f"{where}: is no JSON ({short(body)})"]
        schema = next((c.get("schema") for kind, c in content.items() if "json" in kind), None)
        if schema is None:
            return [f"{where}: is JSON, the document names {sorted(content)}"]
        return [f"{where}: {problem}" for problem in self.problems(schema, body)]

    def check_request(self, method, path, body, answer=None):
        """Of a request that was answered with 2xx. body: bytes or None; answer: what it was answered with."""
        where = f"{method} {path}"
        operation = self.operation("GET" if method == "HEAD" else method, path)
        if operation is None:
            return [f"{where}: was taken, the document does not know it"]
        found = [f"{where}: {problem}" for problem in self.check_query(operation, path.partition("?")[2])]
        schema = self.request_schema(method, path)
        if body and schema is None:  # {} says nothing
            return found + ([f"{where}: took a body, the document names none"] if json.loads(body) != {} else [])
        required = self.resolve(operation.get("requestBody", {})).get("required", False)
        if not body:
            return found + ([f"{where}: took no body, the document asks for one"] if required else [])
        value = json.loads(body)
        if template_is_report(self.template(path)):  # elements are refused one by one
            value = [e for e, item in zip(value, answer["items"]) if item["ok"]]
        return found + [f"{where}: {problem}" for problem in self.problems(schema, value, "its body")]

    def check_query(self, operation, query):
        known = {p["name"]: p for p in map(self.resolve, operation.get("parameters", [])) if p["in"] == "query"}
        given = urllib.parse.parse_qsl(query, keep_blank_values=True)
        found = [f"took '{name}', which the document does not name" for name, _ in given if name not in known]
        for name, text in given:
            if name in known:
                found += self.problems(known[name]["schema"], self.value_of(known[name]["schema"], text),
                                       f"its parameter {name}")
        return found + [f"took it without '{name}'" for name, p in known.items()
                        if p.get("required") and name not in dict(given)]

    def value_of(self, schema, text):
        """A parameter as JSON has it. The plus of a time's offset may come as a blank, as queries write it."""
        schema = self.resolve(schema)
        if schema.get("format") == "date-time":
            return re.sub(r" (?=\d\d:\d\d\Z)", "+", text)
        if schema.get("type") in ("integer", "boolean"):
            try:
                return json.loads(text)
            except ValueError:
                pass
        return text


def template_is_report(template):
    return template == "/v1/workers/{id}:report"


def sequence(checks):
    def all_of(value, problems):
        for check in checks:
            check(value, problems)
    return all_of


def fails(rule, value):
    found = []
    rule(value, found)
    return found


def chooser(word, rules):
    """A check for oneOf and anyOf. Most values have a type that only one of the rules takes: it is that one's."""
    alone = {}
    for kind, name in ((str, "string"), (type(None), "null"), (bool, "boolean"), (int, "integer"), (dict, "object"),
                       (list, "array")):
        takers = [rule for rule in rules if name in getattr(rule, "wanted", ANY_TYPE)
                  or (name == "integer" and "number" in rule.wanted)]
        if len(takers) == 1:
            alone[kind] = takers[0]

    def check(value, problems):
        rule = alone.get(type(value))
        if rule:
            rule(value, problems)
        else:
            choose(word, rules, value, problems)
    return check


def choose(word, rules, value, problems):
    """oneOf takes exactly one, anyOf at least one. The nearest one is reported."""
    nearest, fits = None, 0
    others = [rule for rule in rules if is_type(value, getattr(rule, "wanted", ANY_TYPE))]
    for rule in others or rules:
        found = []
        rule(value, found)
        if not found:
            fits += 1
            if word == "anyOf":
                return
        elif nearest is None or len(found) < len(nearest):
            nearest = found
    if fits > 1:
        problems.append(f": {short(value)} fits {fits} of oneOf")
    elif fits == 0:
        problems.extend(nearest)


def prefix(problems, first, name):
    problems[first:] = [f"/{name}{problem}" for problem in problems[first:]]


def short(value):
    text = value.decode(errors="replace") if isinstance(value, bytes) else reprlib.repr(value)
    return text if len(text) <= 120 else text[:117] + "..."


@functools.lru_cache(maxsize=1)
def document():
    return Document(json.loads(DOCUMENT.read_text()))


def check(method, path, status, body):
    """What of an answer is not as openapi.json says: sentences, an empty list if all is right."""
    return document().check(method, path, status, body)


def check_request(method, path, body, answer=None):
    """The same of a request that was answered with 2xx."""
    return document().check_request(method, path, body, answer)
