/* Edit distance with swaps of neighbours counted once, because that is how people mistype. A word
 * is near when at most a third of it differs, or when what was typed is its beginning. */
#include "cli/frame/suggest.h"

#define WORD_BYTES_MAX 32 /* no command, flag or key is longer; bounds the rows below */

static uint32_t min3(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t least = a < b ? a : b;

    return least < c ? least : c;
}

/* Both words are at most WORD_BYTES_MAX long. */
static uint32_t distance(struct str a, struct str b)
{
    uint32_t rows[3][WORD_BYTES_MAX + 1];

    for (uint32_t j = 0; j <= b.len; j++)
        rows[0][j] = j;
    for (uint32_t i = 1; i <= a.len; i++) {
        uint32_t *row = rows[i % 3];
        const uint32_t *above = rows[(i + 2) % 3];
        const uint32_t *above2 = rows[(i + 1) % 3];

        row[0] = i;
        for (uint32_t j = 1; j <= b.len; j++) {
            bool same = a.data[i - 1] == b.data[j - 1];

            row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1));
            if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] &&
                a.data[i - 2] == b.data[j - 1] && above2[j - 2] + 1 < row[j])
                row[j] = above2[j - 2] + 1;
        }
    }
    return rows[a.len % 3][b.len];
}

void suggest_init(struct suggest *suggest, struct str typed)
{
    suggest->typed = typed;
    suggest->best = NULL;
    suggest->distance = UINT32_MAX;
}

void suggest_offer(struct suggest *suggest, const char *word)
{
    struct str known = str_of(word);
    size_t longer = known.len > suggest->typed.len ? known.len : suggest->typed.len;
    uint32_t found;

    if (known.len > WORD_BYTES_MAX || suggest->typed.len > WORD_BYTES_MAX)
        return;
    found = distance(suggest->typed, known);
    if (suggest->typed.len >= 3 && str_starts(known, suggest->typed))
        found = 1;
    else if (found > (longer + 2) / 3)
        return;
    if (found >= suggest->distance)
        return;
    suggest->distance = found;
    suggest->best = word;
}
