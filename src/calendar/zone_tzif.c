/* Makes a zone from the bytes of a TZif file (RFC 8536). The bytes are not trusted: every count is
 * checked against what is left before it is used. Leap seconds (the folder right/) are refused:
 * our instants count none. Pure, any thread. */
#include "calendar/zone_int.h"

#include "calendar/civil.h"

#define HEADER_BYTES 44
#define FIRST_RULE_YEAR 1970 /* of a zone that is its rule only; any year would do */

struct header {
    unsigned char version;
    uint32_t utc_count;
    uint32_t standard_count;
    uint32_t leap_count;
    uint32_t time_count;
    uint32_t type_count;
    uint32_t char_count;
};

struct block {
    struct header header;
    const unsigned char *times;
    const unsigned char *indices;
    const unsigned char *types;
    const unsigned char *chars;
    uint32_t time_bytes; /* 4 or 8 */
};

static uint32_t read_u32(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int64_t read_time(const unsigned char *at, uint32_t bytes)
{
    if (bytes == 4)
        return (int32_t)read_u32(at);
    return (int64_t)((uint64_t)read_u32(at) << 32 | read_u32(at + 4));
}

static int read_header(struct str *rest, struct header *header, struct err *err)
{
    const unsigned char *at = (const unsigned char *)rest->data;

    if (rest->len < HEADER_BYTES || memcmp(at, "TZif", 4) != 0)
        return err_set(err, ERR_MALFORMED, "this is not a time zone file");
    header->version = at[4];
    header->utc_count = read_u32(at + 20);
    header->standard_count = read_u32(at + 24);
    header->leap_count = read_u32(at + 28);
    header->time_count = read_u32(at + 32);
    header->type_count = read_u32(at + 36);
    header->char_count = read_u32(at + 40);
    *rest = str_span(rest->data + HEADER_BYTES, rest->len - HEADER_BYTES);
    return 0;
}

static uint64_t block_bytes(const struct header *header, uint32_t time_bytes)
{
    return (uint64_t)header->time_count * (time_bytes + 1) + (uint64_t)header->type_count * 6 +
           header->char_count + (uint64_t)header->leap_count * (time_bytes + 4) +
           header->standard_count + header->utc_count;
}

static int take_block(struct str *rest, uint32_t time_bytes, struct block *block, struct err *err)
{
    const struct header *header = &block->header;
    uint64_t bytes = block_bytes(header, time_bytes);

    if (bytes > rest->len)
        return err_set(err, ERR_MALFORMED, "the time zone file is cut off");
    block->time_bytes = time_bytes;
    block->times = (const unsigned char *)rest->data;
    block->indices = block->times + (size_t)header->time_count * time_bytes;
    block->types = block->indices + header->time_count;
    block->chars = block->types + (size_t)header->type_count * 6;
    *rest = str_span(rest->data + bytes, rest->len - (size_t)bytes);
    return 0;
}

static int check_counts(const struct header *header, struct err *err)
{
    if (header->leap_count > 0)
        return err_set(err, ERR_MALFORMED,
                       "the time zone counts leap seconds; use the one without right/");
    if (header->type_count < 1 || header->type_count > 256 || header->char_count < 1 ||
        header->time_count > ZONE_FILE_CHANGES_MAX)
        return err_set(err, ERR_MALFORMED, "the time zone file has counts that cannot be");
    return 0;
}

static int take_types(const struct block *block, struct zone *zone, struct err *err)
{
    for (uint32_t i = 0; i < block->header.type_count; i++) {
        const unsigned char *at = block->types + (size_t)i * 6;
        struct zone_type *type = &zone->types[i];
        int32_t offset_s = (int32_t)read_u32(at);
        uint32_t left;

        if (offset_s < ZONE_OFFSET_MIN_S || offset_s > ZONE_OFFSET_MAX_S || at[4] > 1 ||
            at[5] >= block->header.char_count)
            return err_set(err, ERR_MALFORMED, "type %u of the time zone cannot be", i);
        left = block->header.char_count - at[5];
        if (!memchr(block->chars + at[5], '\0', left))
            return err_set(err, ERR_MALFORMED, "type %u of the time zone has no name", i);
        type->offset_s = offset_s;
        type->is_daylight = at[4];
        snprintf(type->abbreviation, sizeof type->abbreviation, "%s",
                 (const char *)block->chars + at[5]);
    }
    zone->types_count = block->header.type_count;
    return 0;
}

static int take_changes(const struct block *block, struct zone *zone, struct err *err)
{
    int64_t before_s = INT64_MIN;

    for (uint32_t i = 0; i < block->header.time_count; i++) {
        int64_t at_s = read_time(block->times + (size_t)i * block->time_bytes, block->time_bytes);

        if (block->indices[i] >= block->header.type_count || (i > 0 && at_s <= before_s))
            return err_set(err, ERR_MALFORMED, "change %u of the time zone cannot be", i);
        before_s = at_s;
        zone_append(zone, at_s, block->indices[i]);
    }
    return 0;
}

/* When both fall on one instant, daylight time continues: that is how a rule says "all year". */
static void append_year(struct zone *zone, const struct zone_rule *rule, int32_t year,
                        int64_t after_s, uint16_t first_type)
{
    int64_t start_s, end_s;
    bool start_first;

    zone_rule_year(rule, year, &start_s, &end_s);
    start_first = start_s < end_s;
    for (int i = 0; i < 2; i++) {
        bool is_start = (i == 0) == start_first;
        int64_t at_s = is_start ? start_s : end_s;

        if (at_s > after_s)
            zone_append(zone, at_s, (uint16_t)(first_type + is_start));
    }
}

void zone_append_rule(struct zone *zone, const struct zone_rule *rule)
{
    uint16_t first_type = (uint16_t)zone->types_count;
    int64_t after_s = zone->count > 0 ? zone->at_s[zone->count - 1] : -ZONE_EVER_S;
    int32_t year = FIRST_RULE_YEAR;

    zone->types[zone->types_count++] = rule->standard;
    zone->types[zone->types_count++] = rule->daylight;
    if (!rule->has_daylight) {
        if (zone->count == 0)
            zone->span_type[0] = first_type;
        return;
    }
    if (zone->count > 0)
        year = civil_date_of(civil_floor_div(after_s, CIVIL_DAY_S)).year;
    zone->cycle_before = zone->count == 0;
    for (int32_t i = 0; i < ZONE_RULE_YEARS; i++)
        append_year(zone, rule, year + i, after_s, first_type);
    /* From here on, whole years before and a whole cycle behind come from the rule alone. */
    zone->cycle_from_s = civil_days(year + 2, 1, 1) * CIVIL_DAY_S;
}

/* The footer is a line of its own: \nTZ\n. Nothing between the two means that no rule is known. */
static int take_footer(struct str rest, struct zone *zone, struct err *err)
{
    struct zone_rule rule;
    const char *end;

    if (rest.len < 2 || rest.data[0] != '\n')
        return err_set(err, ERR_MALFORMED, "the time zone file has no footer");
    end = memchr(rest.data + 1, '\n', rest.len - 1);
    if (!end)
        return err_set(err, ERR_MALFORMED, "the footer of the time zone file is cut off");
    if (end == rest.data + 1)
        return 0;
    TRY(zone_rule_parse(str_span(rest.data + 1, (size_t)(end - rest.data) - 1), &rule, err));
    zone_append_rule(zone, &rule);
    return 0;
}

/* The newest of the file's blocks, with the counts checked; what is left of rest is the footer. */
static int find_block(struct str *rest, struct block *block, struct err *err)
{
    int rc = read_header(rest, &block->header, err);

    rc = rc < 0 ? rc : take_block(rest, 4, block, err);
    if (rc == 0 && block->header.version >= '2') { /* the same again in 64 bits */
        rc = read_header(rest, &block->header, err);
        rc = rc < 0 ? rc : take_block(rest, 8, block, err);
    }
    return rc < 0 ? rc : check_counts(&block->header, err);
}

static int fill(struct zone *zone, const struct block *block, struct str rest, struct err *err)
{
    int rc = take_types(block, zone, err);

    rc = rc < 0 ? rc : take_changes(block, zone, err);
    if (rc == 0 && block->time_bytes == 8)
        rc = take_footer(rest, zone, err);
    return rc;
}

int zone_parse(struct str name, struct str bytes, struct zone **zone, struct err *err)
{
    struct block block = {.time_bytes = 4};
    struct zone *made = NULL;
    int rc;

    *zone = NULL;
    if (bytes.len > ZONE_FILE_BYTES_MAX)
        return err_set(err, ERR_MALFORMED, "the time zone file is larger than %d bytes",
                       ZONE_FILE_BYTES_MAX);
    rc = find_block(&bytes, &block, err);
    rc = rc < 0 ? rc : zone_new(name, block.header.time_count + 2 * ZONE_RULE_YEARS, &made, err);
    if (rc < 0)
        return rc;
    rc = fill(made, &block, bytes, err);
    if (rc < 0) {
        zone_free(made);
        return rc;
    }
    zone_finish(made);
    *zone = made;
    return 0;
}
