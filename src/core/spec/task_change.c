#include "core/spec/task_change.h"

#include "base/buf.h"
#include "core/spec/spec_int.h"
#include "core/task/task_fields.h"

#define DETAIL_BYTES_MAX (TASK_EDITS_MAX * 8 * BOUND_EDIT_BYTES) /* \u0001 for a byte, and names */

int change_add(struct task_change *change, size_t edit, struct str text, struct err *err)
{
    const struct task_edit *row = &task_edits[edit];

    if (text.len == 0)
        text = STR_NONE;
    else
        TRY(spec_check_text(text, row->bytes_max, row->name, err));
    *task_edit_text(&change->about, edit) = text;
    change->set |= 1U << edit;
    return 0;
}

static struct str text_of(const struct task_about *about, size_t edit)
{
    return *(const struct str *)(const void *)((const char *)about + task_edits[edit].at);
}

uint32_t change_apply(const struct task_change *change, struct task_about *about)
{
    uint32_t differs = 0;

    for (size_t i = 0; task_edits[i].name; i++) {
        struct str text = text_of(&change->about, i);

        if (!(change->set & 1U << i) || str_eq(text, text_of(about, i)))
            continue;
        *task_edit_text(about, i) = text;
        differs |= 1U << i;
    }
    return differs;
}

struct str change_tell(struct str detail, const struct task_about *about, uint32_t set,
                       struct arena *arena)
{
    BUF_AUTO struct buf out = BUF_INIT(DETAIL_BYTES_MAX + detail.len);

    if (detail.data)
        buf_str(&out, str_span(detail.data, detail.len - 1));
    else
        buf_byte(&out, '{');
    for (size_t i = 0; task_edits[i].name; i++)
        if (set & 1U << i)
            json_write_member_string(&out, task_edits[i].name, text_of(about, i));
    buf_byte(&out, '}');
    return out.failed ? STR_NONE : arena_str(arena, buf_view(&out));
}

uint32_t change_given(const struct task_about *about)
{
    uint32_t given = 0;

    for (size_t i = 0; task_edits[i].name; i++)
        given |= (uint32_t)(text_of(about, i).data != NULL) << i;
    return given;
}
