/* See search.h. A few dozen bytes per text and a few words: the plain way is quick enough. Pure. */
#include "core/task/search.h"

#include "base/uuid7.h"
#include "core/queue_name.h"
#include "core/task/task.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static struct str without_stars(struct str word)
{
    while (word.len && word.data[word.len - 1] == '*')
        word.len--;
    while (word.len && word.data[0] == '*')
        word = str_span(word.data + 1, word.len - 1);
    return word;
}

bool search_parse(struct search *search, struct str text)
{
    size_t at = 0;

    search->count = 0;
    for (;;) {
        struct str word;
        bool quoted;
        size_t from;

        while (at < text.len && is_blank(text.data[at]))
            at++;
        if (at == text.len)
            return true;
        quoted = text.data[at] == '"';
        from = quoted ? ++at : at;
        while (at < text.len && (quoted ? text.data[at] != '"' : !is_blank(text.data[at])))
            at++;
        word = str_span(text.data + from, at - from);
        if (!quoted)
            word = without_stars(word);
        if (word.len && search->count == SEARCH_WORDS_MAX)
            return false;
        if (word.len)
            search->words[search->count++] = word;
        if (quoted && at < text.len)
            at++;
    }
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool occurs(struct str word, struct str text)
{
    for (size_t from = 0; from + word.len <= text.len; from++) {
        size_t same = 0;

        while (same < word.len && lower(text.data[from + same]) == lower(word.data[same]))
            same++;
        if (same == word.len)
            return true;
    }
    return false;
}

static bool word_fits(struct str word, const struct task *task)
{
    const struct task_spec *spec = &task->spec;
    char id[UUID_TEXT_BYTES];

    uuid_format(&task->id, id);
    return occurs(word, spec->name) || occurs(word, spec->type) ||
           occurs(word, queue_name_plain(spec->queue)) || occurs(word, spec->tags) ||
           occurs(word, spec->user_id) || occurs(word, spec->external_id) ||
           occurs(word, spec->context_key) || occurs(word, spec->correlation_id) ||
           occurs(word, spec->workflow_id) || occurs(word, str_of(id));
}

bool search_fits(const struct search *search, const struct task *task)
{
    for (uint32_t i = 0; i < search->count; i++)
        if (!word_fits(search->words[i], task))
            return false;
    return true;
}

bool search_is_pattern(struct str value)
{
    return value.len && (value.data[0] == '*' || value.data[value.len - 1] == '*');
}

int search_read_exact(const char *field, struct str *value, struct err *err)
{
    if (value->len > 2 && value->data[0] == '"' && value->data[value->len - 1] == '"') {
        struct str inside = str_span(value->data + 1, value->len - 2);

        if (search_is_pattern(inside))
            *value = inside;
        return 0;
    }
    if (!search_is_pattern(*value))
        return 0;
    return err_set_field(err, ERR_INVALID, field, "'%s' takes a whole value, no wildcards; 'q' in "
                         "a list of tasks finds parts of names, types, queues, tags and ids; put "
                         "the value in double quotes where the '*' is part of it", field);
}
