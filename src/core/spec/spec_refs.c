/* Which tasks a task waits for: reading `depends_on`, finding the elements that refs name, and
 * refusing cycles with their path (F-H11). Tasks that exist already cannot depend on new ones, so
 * only refs within one array can form a cycle. No recursion: a chain may be as long as the array.
 * Pure, any thread. */
#include "core/spec/spec_int.h"

#include "base/map.h"

#define PATH_BYTES 240 /* a longer path is shortened in its middle; the sentence has 512 */

static int bad_entry(struct err *err)
{
    return err_set_field(err, ERR_INVALID, "depends_on",
                         "an entry of \"depends_on\" must be a task's id, "
                         "{\"task\":id,\"type\":kind} or {\"ref\":name,\"type\":kind} with kind "
                         "success, completion or failure");
}

static int read_task_id(struct str value, struct arena *arena, struct uuid *id, struct err *err)
{
    struct str text = json_string(value, arena);

    if (!uuid_parse(text, id) || uuid_is_nil(id))
        return err_set_field(err, ERR_INVALID, "depends_on",
                             "\"" STR_FMT "\" is not the id of a task",
                             STR_ARG(str_span(text.data, text.len > 80 ? 80 : text.len)));
    return 0;
}

static int read_ref(struct str value, struct arena *arena, struct str *ref, struct err *err)
{
    TRY(spec_read_string(value, "depends_on", arena, ref, err));
    return spec_check_text(*ref, BOUND_NAME_BYTES, "depends_on", err);
}

static int read_entry_object(struct str object, struct arena *arena,
                             struct input_dependency *dependency, struct err *err)
{
    struct json_iter iter;
    struct json_member member;
    uint32_t parents = 0;
    int rc = 0;

    json_begin(object, &iter);
    while (rc == 0 && json_next_member(&iter, &member)) {
        if (json_key_is(member.key, STR("task"))) {
            parents++;
            rc = read_task_id(member.value, arena, &dependency->task_id, err);
        } else if (json_key_is(member.key, STR("ref"))) {
            parents++;
            rc = read_ref(member.value, arena, &dependency->ref, err);
        } else if (!json_key_is(member.key, STR("type")) ||
                   !dependency_parse(json_string(member.value, arena), &dependency->kind)) {
            rc = bad_entry(err);
        }
    }
    return rc < 0 || parents == 1 ? rc : bad_entry(err);
}

static int read_entry(struct str value, struct arena *arena, struct input_dependency *dependency,
                      struct err *err)
{
    *dependency = (struct input_dependency){.kind = DEPENDENCY_SUCCESS};
    switch (json_kind(value)) {
    case JSON_STRING:
        return read_task_id(value, arena, &dependency->task_id, err);
    case JSON_OBJECT:
        return read_entry_object(value, arena, dependency, err);
    default:
        return bad_entry(err);
    }
}

static int compare_parents(const void *left, const void *right)
{
    const struct input_dependency *a = *(const struct input_dependency *const *)left;
    const struct input_dependency *b = *(const struct input_dependency *const *)right;
    int order = memcmp(&a->task_id, &b->task_id, sizeof a->task_id);

    return order ? order : str_compare(a->ref, b->ref);
}

/* Sorted, so that a thousand entries take no million comparisons. */
static int check_parents_differ(const struct task_input *input, struct arena *arena,
                                struct err *err)
{
    uint32_t count = input->depends_on_count;
    const struct input_dependency **sorted = arena_alloc_array(arena, count, sizeof *sorted);
    char text[UUID_TEXT_BYTES];

    if (!sorted)
        return spec_no_memory(err);
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = &input->depends_on[i];
    qsort(sorted, count, sizeof *sorted, compare_parents);
    for (uint32_t i = 1; i < count; i++) {
        if (compare_parents(&sorted[i - 1], &sorted[i]) != 0)
            continue;
        uuid_format(&sorted[i]->task_id, text);
        return err_set_field(err, ERR_INVALID, "depends_on",
                             "\"depends_on\" names \"" STR_FMT "\" twice; name it once",
                             STR_ARG(sorted[i]->ref.data ? sorted[i]->ref : str_of(text)));
    }
    return 0;
}

int spec_read_depends_on(struct str value, struct arena *arena, struct task_input *input,
                         struct err *err)
{
    struct json_iter iter;
    struct str element;
    size_t count;
    int rc;

    if (json_kind(value) != JSON_ARRAY)
        return err_set_field(err, ERR_INVALID, "depends_on", "\"depends_on\" must be an array");
    count = json_count(value);
    if (count > BOUND_DEPENDS_ON)
        return err_set_field(err, ERR_INVALID, "depends_on",
                             "\"depends_on\" has %zu entries; at most %d are allowed", count,
                             BOUND_DEPENDS_ON);
    if (count == 0)
        return 0;
    input->depends_on = arena_alloc_array(arena, count, sizeof *input->depends_on);
    if (!input->depends_on)
        return spec_no_memory(err);
    json_begin(value, &iter);
    while (json_next_element(&iter, &element)) {
        rc = read_entry(element, arena, &input->depends_on[input->depends_on_count], err);
        if (rc < 0)
            return rc;
        input->depends_on_count++;
    }
    return count > 1 ? check_parents_differ(input, arena, err) : 0;
}

static int collect_refs(struct task_input *inputs, uint32_t count, struct map *refs,
                        struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        struct str ref = inputs[i].spec.origin.ref;

        if (!ref.data)
            continue;
        if (map_get(refs, ref))
            return err_set_field(err, ERR_INVALID, "ref",
                                 "element %u: the ref \"" STR_FMT "\" is another element's "
                                 "already; a ref must be unique in its array",
                                 i, STR_ARG(ref));
        if (map_put(refs, ref, &inputs[i]) < 0)
            return spec_no_memory(err);
    }
    return 0;
}

/* Sets the element behind each ref; *linked counts them. */
static int link_elements(struct task_input *inputs, uint32_t count, const struct map *refs,
                         uint32_t *linked, struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < inputs[i].depends_on_count; k++) {
            struct input_dependency *dependency = &inputs[i].depends_on[k];
            struct task_input *parent;

            if (!dependency->ref.data)
                continue;
            parent = map_get(refs, dependency->ref);
            if (!parent)
                return err_set_field(err, ERR_INVALID, "depends_on",
                                     "element %u depends on the ref \"" STR_FMT "\", which no "
                                     "element of this array has",
                                     i, STR_ARG(dependency->ref));
            dependency->element = (uint32_t)(parent - inputs);
            (*linked)++;
        }
    }
    return 0;
}

/* The walk from a task to what it depends on: `path` holds the elements that are open. */
struct walk {
    struct task_input *inputs;
    uint32_t *path;
    uint32_t *next; /* per element: the dependency to look at next */
    uint8_t *seen;  /* per element: 0 = not yet, OPEN, or DONE */
    uint32_t depth;
};

enum { OPEN = 1, DONE = 2 };

/* path[first] ... path[depth - 1] and back to path[first]. Every element of a cycle has a ref. */
static int refuse_cycle(const struct walk *walk, uint32_t element, struct err *err)
{
    struct str begin = walk->inputs[element].spec.origin.ref;
    char path[PATH_BYTES + 16];
    uint32_t first = 0;
    size_t len = 0;

    while (walk->path[first] != element)
        first++;
    path[0] = '\0';
    for (uint32_t i = first + 1; i < walk->depth; i++) {
        struct str ref = walk->inputs[walk->path[i]].spec.origin.ref;

        if (len + ref.len + 4 > PATH_BYTES) {
            snprintf(path + len, sizeof path - len, "... -> ");
            break;
        }
        len += (size_t)snprintf(path + len, sizeof path - len, STR_FMT " -> ", STR_ARG(ref));
    }
    return err_set_field(err, ERR_INVALID, "depends_on",
                         "the dependencies form a cycle: %.*s -> %s%.*s",
                         (int)(begin.len > 100 ? 100 : begin.len), begin.data, path,
                         (int)(begin.len > 100 ? 100 : begin.len), begin.data);
}

static void open_element(struct walk *walk, uint32_t element)
{
    walk->path[walk->depth++] = element;
    walk->seen[element] = OPEN;
}

static int walk_from(struct walk *walk, uint32_t start, struct err *err)
{
    open_element(walk, start);
    while (walk->depth) {
        uint32_t element = walk->path[walk->depth - 1];
        const struct task_input *input = &walk->inputs[element];
        const struct input_dependency *dependency;

        if (walk->next[element] == input->depends_on_count) {
            walk->seen[element] = DONE;
            walk->depth--;
            continue;
        }
        dependency = &input->depends_on[walk->next[element]++];
        if (!dependency->ref.data || walk->seen[dependency->element] == DONE)
            continue;
        if (walk->seen[dependency->element] == OPEN)
            return refuse_cycle(walk, dependency->element, err);
        open_element(walk, dependency->element);
    }
    return 0;
}

static int refuse_cycles(struct task_input *inputs, uint32_t count, struct arena *arena,
                         struct err *err)
{
    struct walk walk = {
        .inputs = inputs,
        .path = arena_alloc_array(arena, count, sizeof *walk.path),
        .next = arena_alloc_array(arena, count, sizeof *walk.next),
        .seen = arena_alloc(arena, count),
    };

    if (!walk.path || !walk.next || !walk.seen)
        return spec_no_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        int rc = walk.seen[i] ? 0 : walk_from(&walk, i, err);

        if (rc < 0)
            return rc;
    }
    return 0;
}

int spec_link_refs(struct task_input *inputs, uint32_t count, struct arena *arena,
                   struct err *err)
{
    struct map refs = MAP_INIT;
    uint32_t linked = 0;
    int rc;

    rc = collect_refs(inputs, count, &refs, err);
    if (rc == 0)
        rc = link_elements(inputs, count, &refs, &linked, err);
    if (rc == 0 && linked)
        rc = refuse_cycles(inputs, count, arena, err);
    map_deinit(&refs);
    return rc;
}
