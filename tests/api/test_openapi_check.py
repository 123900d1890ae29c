"""openapi_check finds what differs from a document, and takes what does not (E1): without this the tests that ask
it prove nothing."""
import copy
import unittest

import openapi_check

DOCUMENT = {
    "paths": {
        "/things/{id}": {"get": {"responses": {"200": {"content": {"application/json": {"schema": {
            "$ref": "#/components/schemas/Thing"}}}}, "404": {"$ref": "#/components/responses/Gone"},
            "204": {"description": "Nothing."}}}},
        "/things/{id}:stop": {"post": {"responses": {"200": {"content": {"text/plain": {}}}}}},
    },
    "components": {
        "responses": {"Gone": {"content": {"application/json": {"schema": {
            "type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}}}}},
        "schemas": {
            "Base": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string", "format": "uuid"}}},
            "Thing": {"allOf": [{"$ref": "#/components/schemas/Base"}], "required": ["size"], "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 9}, "at": {"type": ["string", "null"],
                                                                                "format": "date-time"},
                "kind": {"enum": ["a", "b", 1]}, "name": {"type": "string", "maxLength": 3, "minLength": 1},
                "either": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
                "within": {"$ref": "#/components/schemas/Thing"}, "free": {},
                "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                "list": {"type": "array", "maxItems": 2, "items": {"type": "boolean"}}}},
        }},
}
ID = "01941f29-7c00-7000-8000-0000000000aa"
GOOD = {"id": ID, "size": 3, "at": "2027-01-02T03:04:05.000001Z", "kind": 1, "name": "abc", "either": "x",
        "within": {"id": ID, "size": 1, "at": None}, "free": {"any": [1]}, "map": {"x": 1}, "list": [True]}
WRONG = {"id": ["x", 5, None], "size": [0, 10, 2.5, True, "3"], "at": ["yesterday", 5], "kind": ["c", True],
         "name": ["abcd", "", None], "either": [1.5, None], "map": [{"x": "1"}, []],
         "within": [{"id": ID}, {"id": ID, "size": 1, "more": 1}, {"id": ID, "size": 1, "within": {}}],
         "list": [[1], [True] * 3, {}], "stranger": [1]}


class OpenapiCheckTest(unittest.TestCase):
    def setUp(self):
        self.document = openapi_check.Document(DOCUMENT)

    def check(self, status, body, path="/things/7", method="GET"):
        return self.document.check(method, path, status, body)

    def test_an_answer_as_the_document_says_is_taken(self):
        self.assertEqual(self.check(200, GOOD), [])
        self.assertEqual(self.check(404, {"error": "gone"}), [])
        self.assertEqual(self.check(204, None), [])
        self.assertEqual(self.check(200, "text", "/things/a:b:stop?x=1", "POST"), [])

    def test_every_difference_is_found(self):
        for name, values in WRONG.items():
            for value in values:
                body = copy.deepcopy(GOOD)
                body[name] = value
                self.assertTrue(self.check(200, body), (name, value))
        for name in ("id", "size"):
            self.assertEqual(len(self.check(200, {k: v for k, v in GOOD.items() if k != name})), 1, name)

    def test_a_status_a_path_a_method_and_a_body_that_are_not_named_are_found(self):
        self.assertTrue(self.check(500, {"error": "x"}))
        self.assertTrue(self.check(404, {"error": "x", "more": 1}))
        self.assertTrue(self.check(204, {}))
        self.assertTrue(self.check(200, GOOD, "/other"))
        self.assertTrue(self.check(200, GOOD, method="PUT"))
        self.assertTrue(self.check(200, {"x": 1}, "/things/7:stop", "POST"))

    def test_the_whole_document_is_understood(self):
        real = openapi_check.document()
        for path, item in real.document["paths"].items():
            for method in set(item) & set(openapi_check.METHODS):
                schema = real.request_schema(method, path)
                schemas = [schema] if schema else []
                for answer in item[method]["responses"].values():
                    content = real.resolve(answer).get("content", {})
                    schemas += [c["schema"] for c in content.values() if "schema" in c]
                for each in schemas:
                    real.rule(each)  # raises where a word of the schema is not known


if __name__ == "__main__":
    unittest.main()
