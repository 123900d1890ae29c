/* Of the many bounds of a histogram a few round ones are shown: each is a time series per queue. */
#include "core/measure/metrics_text.h"

#include "core/queue_name.h"
#include "core/task/task.h"

static const struct {
    int64_t us;
    const char *word;
} shown[] = {{500, "0.0005"},       {1000, "0.001"},      {2500, "0.0025"},  {5000, "0.005"},
             {10000, "0.01"},       {25000, "0.025"},     {50000, "0.05"},   {100000, "0.1"},
             {250000, "0.25"},      {500000, "0.5"},      {1000000, "1"},    {2500000, "2.5"},
             {5000000, "5"},        {10000000, "10"},     {30000000, "30"},  {60000000, "60"},
             {300000000, "300"},    {600000000, "600"},   {3000000000, "3000"}};

void metrics_head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_format(out, "# HELP perdura_%s %s\n# TYPE perdura_%s %s\n", name, help, name, type);
}

void metrics_one(struct buf *out, const char *name, const char *type, const char *help,
                 int64_t value)
{
    metrics_head(out, name, type, help);
    metrics_sample(out, name, NULL, value);
}

void metrics_one_decimal(struct buf *out, const char *name, const char *type, const char *help,
                         double value)
{
    metrics_head(out, name, type, help);
    metrics_sample_decimal(out, name, NULL, value);
}

/* In label values the format escapes backslash, quote and line feed. */
static void write_value(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];

        if (c == '\\' || c == '"')
            buf_byte(out, '\\');
        if (c == '\n')
            buf_text(out, "\\n");
        else
            buf_byte(out, c);
    }
}

static void write_name(struct buf *out, const char *name, const char *suffix,
                       const struct metrics_label *labels, const char *bound)
{
    bool any = false;

    buf_format(out, "perdura_%s%s", name, suffix);
    for (; labels && labels->name; labels++) {
        bool is_full = strcmp(labels->name, "queue") == 0 &&
                       !queue_name_in(labels->value, STR(TASK_DEFAULT_NAMESPACE));

        if (is_full) { /* a queue of another namespace than `default` is two labels */
            buf_text(out, any ? ",namespace=\"" : "{namespace=\"");
            write_value(out, queue_name_namespace(labels->value));
            buf_byte(out, '"');
        }
        buf_format(out, "%s%s=\"", any || is_full ? "," : "{", labels->name);
        write_value(out, is_full ? queue_name_plain(labels->value) : labels->value);
        buf_byte(out, '"');
        any = true;
    }
    if (bound)
        buf_format(out, "%sle=\"%s\"", any ? "," : "{", bound);
    buf_text(out, any || bound ? "} " : " ");
}

void metrics_sample(struct buf *out, const char *name, const struct metrics_label *labels,
                    int64_t value)
{
    write_name(out, name, "", labels, NULL);
    buf_int(out, value);
    buf_byte(out, '\n');
}

void metrics_sample_decimal(struct buf *out, const char *name, const struct metrics_label *labels,
                            double value)
{
    write_name(out, name, "", labels, NULL);
    buf_format(out, "%.6f\n", value);
}

void metrics_histogram(struct buf *out, const char *name, const struct metrics_label *labels,
                       const struct histogram *histogram)
{
    int64_t count = histogram_count(histogram);

    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
        write_name(out, name, "_bucket", labels, shown[i].word);
        buf_int(out, histogram_within(histogram, shown[i].us));
        buf_byte(out, '\n');
    }
    write_name(out, name, "_bucket", labels, "+Inf");
    buf_int(out, count);
    buf_byte(out, '\n');
    write_name(out, name, "_sum", labels, NULL);
    buf_format(out, "%.6f\n", (double)histogram->sum_us / 1e6);
    write_name(out, name, "_count", labels, NULL);
    buf_int(out, count);
    buf_byte(out, '\n');
}
