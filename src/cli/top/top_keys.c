/* Bytes of a terminal to keys, and keys to what the view shows. Sequences that are not known are
 * passed over whole, so that their letters are not taken for commands. Pure. */
#include "cli/top/top_view.h"

static const struct {
    const char *bytes;
    enum top_key_kind kind;
} sequences[] = {
    {"\033[A", TOP_KEY_UP},      {"\033OA", TOP_KEY_UP},     {"\033[B", TOP_KEY_DOWN},
    {"\033OB", TOP_KEY_DOWN},    {"\033[C", TOP_KEY_RIGHT},  {"\033OC", TOP_KEY_RIGHT},
    {"\033[D", TOP_KEY_LEFT},    {"\033OD", TOP_KEY_LEFT},   {"\033[5~", TOP_KEY_PAGE_UP},
    {"\033[6~", TOP_KEY_PAGE_DOWN}, {"\033[H", TOP_KEY_HOME}, {"\033OH", TOP_KEY_HOME},
    {"\033[1~", TOP_KEY_HOME},   {"\033[F", TOP_KEY_END},    {"\033OF", TOP_KEY_END},
    {"\033[4~", TOP_KEY_END},    {"\033[Z", TOP_KEY_BACK_TAB},
};

/* Length of an escape sequence, 0 = its end has not come. */
static size_t sequence_len(const char *bytes, size_t len)
{
    if (len < 2)
        return 0;
    if (bytes[1] == 'O')
        return len < 3 ? 0 : 3;
    if (bytes[1] != '[')
        return 1; /* escape, then something else */
    for (size_t i = 2; i < len; i++) {
        if (bytes[i] >= '@' && bytes[i] <= '~')
            return i + 1;
        if (i > 32)
            return i;
    }
    return 0;
}

static size_t read_sequence(const char *bytes, size_t len, bool all, struct top_key *key)
{
    size_t used = sequence_len(bytes, len);

    if (used == 0 && !all)
        return 0;
    if (used <= 1) {
        key->kind = TOP_KEY_ESCAPE;
        return used == 1 || len < 2 ? 1 : len;
    }
    for (size_t i = 0; i < sizeof sequences / sizeof sequences[0]; i++)
        if (str_eq(str_of(sequences[i].bytes), str_span(bytes, used)))
            key->kind = sequences[i].kind;
    return used;
}

size_t top_key_read(const char *bytes, size_t len, bool all, struct top_key *key)
{
    size_t step;

    *key = (struct top_key){.kind = TOP_KEY_NONE};
    if (len == 0)
        return 0;
    if (bytes[0] == '\033')
        return read_sequence(bytes, len, all, key);
    if (bytes[0] == '\t')
        key->kind = TOP_KEY_TAB;
    else if (bytes[0] == '\r' || bytes[0] == '\n')
        key->kind = TOP_KEY_ENTER;
    else if (bytes[0] == 127 || bytes[0] == '\b')
        key->kind = TOP_KEY_BACKSPACE;
    if (key->kind != TOP_KEY_NONE || (unsigned char)bytes[0] < ' ')
        return 1;
    step = str_utf8_step(bytes, len);
    if (step == 0 && !all && len < 4 && (unsigned char)bytes[0] >= 0xC2 &&
        (unsigned char)bytes[0] <= 0xF4)
        return 0; /* the rest of the character may follow */
    if (step == 0)
        return 1;
    key->kind = TOP_KEY_TEXT;
    memcpy(key->text, bytes, step);
    return step;
}

/* ---- what they do ---- */

static void move(struct top_view *view, const struct top_snapshot *snapshot, int64_t by)
{
    int64_t count = snapshot->counts[view->pane];
    int64_t to = (int64_t)view->selected[view->pane] + by;

    if (to >= count) /* rows that the filter hides count too: drawing sets it right */
        to = count - 1;
    view->selected[view->pane] = to < 0 ? 0 : (uint32_t)to;
    while (view->selected[view->pane] > 0 && !top_view_selected(view, snapshot))
        view->selected[view->pane]--;
}

static void scroll(struct top_view *view, int64_t by)
{
    int64_t last = (int64_t)view->detail.count - 1;
    int64_t to = (int64_t)view->detail_from + by;

    to = to > last ? last : to;
    view->detail_from = to < 0 ? 0 : (uint32_t)to;
}

static void go(struct top_view *view, const struct top_snapshot *snapshot, int64_t by)
{
    if (view->mode == TOP_DETAIL)
        scroll(view, by);
    else
        move(view, snapshot, by);
}

static void next_pane(struct top_view *view, int by)
{
    view->pane = (enum top_pane)(((int)view->pane + by + TOP_PANES_COUNT) % TOP_PANES_COUNT);
}

static void edit_filter(struct top_view *view, const struct top_key *key)
{
    size_t len = strlen(view->filter);

    if (key->kind == TOP_KEY_ENTER) {
        view->mode = TOP_LIST;
    } else if (key->kind == TOP_KEY_ESCAPE) {
        view->filter[0] = '\0';
        view->mode = TOP_LIST;
    } else if (key->kind == TOP_KEY_BACKSPACE && len > 0) {
        do
            len--;
        while (len > 0 && ((unsigned char)view->filter[len] & 0xC0) == 0x80);
        view->filter[len] = '\0';
    } else if (key->kind == TOP_KEY_TEXT && len + strlen(key->text) < sizeof view->filter) {
        memcpy(view->filter + len, key->text, strlen(key->text) + 1);
    }
    memset(view->selected, 0, sizeof view->selected);
}

static enum top_wish letter(struct top_view *view, const struct top_snapshot *snapshot, char c)
{
    switch (c) {
    case 'q':
        return TOP_WISH_QUIT;
    case 'j':
        go(view, snapshot, 1);
        break;
    case 'k':
        go(view, snapshot, -1);
        break;
    case 'g':
        go(view, snapshot, -1000000);
        break;
    case 'G':
        go(view, snapshot, 1000000);
        break;
    case 'r':
        return TOP_WISH_REFRESH;
    case 'p':
        if (view->mode == TOP_LIST && view->pane == TOP_QUEUES &&
            top_view_selected(view, snapshot))
            return TOP_WISH_PAUSE;
        break;
    case '/':
        view->mode = TOP_FILTER;
        break;
    case '?':
        view->mode = view->mode == TOP_HELP ? TOP_LIST : TOP_HELP;
        break;
    default:
        if (c >= '1' && c < '1' + TOP_PANES_COUNT)
            view->pane = (enum top_pane)(c - '1');
    }
    return TOP_WISH_NONE;
}

static enum top_wish enter(struct top_view *view, const struct top_snapshot *snapshot)
{
    if (view->mode != TOP_LIST) {
        view->mode = TOP_LIST;
        return TOP_WISH_NONE;
    }
    return top_view_selected(view, snapshot) ? TOP_WISH_DETAIL : TOP_WISH_NONE;
}

enum top_wish top_view_key(struct top_view *view, const struct top_snapshot *snapshot,
                           const struct top_key *key)
{
    int64_t page = view->rows > 10 ? (int64_t)view->rows - 8 : 2;

    if (view->mode == TOP_FILTER) {
        edit_filter(view, key);
        return TOP_WISH_NONE;
    }
    switch (key->kind) {
    case TOP_KEY_UP:
        go(view, snapshot, -1);
        break;
    case TOP_KEY_DOWN:
        go(view, snapshot, 1);
        break;
    case TOP_KEY_PAGE_UP:
        go(view, snapshot, -page);
        break;
    case TOP_KEY_PAGE_DOWN:
        go(view, snapshot, page);
        break;
    case TOP_KEY_HOME:
        go(view, snapshot, -1000000);
        break;
    case TOP_KEY_END:
        go(view, snapshot, 1000000);
        break;
    case TOP_KEY_TAB:
    case TOP_KEY_RIGHT:
        view->mode = TOP_LIST;
        next_pane(view, 1);
        break;
    case TOP_KEY_BACK_TAB:
    case TOP_KEY_LEFT:
        view->mode = TOP_LIST;
        next_pane(view, -1);
        break;
    case TOP_KEY_ENTER:
        return enter(view, snapshot);
    case TOP_KEY_ESCAPE:
        if (view->mode == TOP_LIST)
            view->filter[0] = '\0';
        view->mode = TOP_LIST;
        break;
    case TOP_KEY_TEXT:
        return letter(view, snapshot, key->text[1] ? '\0' : key->text[0]);
    case TOP_KEY_NONE:
    case TOP_KEY_BACKSPACE:
        break;
    }
    return TOP_WISH_NONE;
}
