/* D12: what nodes tell each other means one thing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "core/hint_words.h"

static void every_word_has_a_byte_of_its_own(void **state)
{
#define HINT_ENTRY(name, byte) name##_word,
    const struct str words[] = {HINT_WORDS(HINT_ENTRY)};
#undef HINT_ENTRY
    bool taken[32] = {false};

    (void)state;
    taken[0] = taken[0x05] = taken[0x1f] = true; /* no word, ALIVE, the separator */
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        unsigned char byte = (unsigned char)words[i].data[0];

        assert_int_equal(words[i].len, 1);
        assert_true(byte < sizeof taken); /* no name of a queue has one */
        assert_false(taken[byte]);
        taken[byte] = true;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_word_has_a_byte_of_its_own)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
