/* Ranges of addresses as an operator writes them: "10.1.0.0/16", "2001:db8::/32", or one address.
 * IPv4 is kept in its IPv6 form (::ffff:a.b.c.d), so that both are compared the same way. Pure; any
 * thread. */
#ifndef CORE_ACCESS_ADDRESS_RANGE_H
#define CORE_ACCESS_ADDRESS_RANGE_H

#include "base/buf.h"

#define ADDRESS_BYTES 16
#define ADDRESS_V4_BITS 96 /* in front of an IPv4 address */

struct address_range {
    uint8_t bytes[ADDRESS_BYTES]; /* no bit is set behind the first `bits` */
    uint8_t bits;
};

/* False for what is no range; also when bits behind the prefix are set ("10.1.2.3/16"), which is a
 * mistake more often than not. */
bool address_range_parse(struct str text, struct address_range *range);
bool address_range_has(const struct address_range *range, const uint8_t address[ADDRESS_BYTES]);
/* Whether it covers every address of IPv4 or of IPv6. */
bool address_range_is_everything(const struct address_range *range);

#endif
