/* What a CA may sign and a program may misread: a NUL in the middle of a name, spaces, letters that
 * look like others. Such names are left out; the rest is passed on byte by byte. */
#include "net/tls_sans.h"

#include <stdlib.h>
#include <string.h>

#define SAN_BYTES_MAX 1024

/* What could be mistaken for another name where it is shown or compared is left out. */
static struct str san_text(const GENERAL_NAME *name)
{
    const ASN1_IA5STRING *value = NULL;
    struct str text;

    if (name->type == GEN_URI)
        value = name->d.uniformResourceIdentifier;
    else if (name->type == GEN_DNS)
        value = name->d.dNSName;
    if (!value || ASN1_STRING_length(value) <= 0 || ASN1_STRING_length(value) > SAN_BYTES_MAX)
        return STR_NONE;
    text = str_span((const char *)ASN1_STRING_get0_data(value), (size_t)ASN1_STRING_length(value));
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] <= ' ' || (unsigned char)text.data[i] >= 127)
            return STR_NONE;
    return text;
}

/* The list, then the texts. */
struct str *tls_sans_of(const GENERAL_NAMES *names, uint32_t *sans_count)
{
    int count = sk_GENERAL_NAME_num(names);
    struct str *sans;
    size_t bytes = 0;
    char *at;

    *sans_count = 0;
    if (count > TLS_SANS_MAX)
        count = TLS_SANS_MAX;
    for (int i = 0; i < count; i++)
        bytes += sizeof(struct str) + 4 + san_text(sk_GENERAL_NAME_value(names, i)).len;
    sans = count > 0 ? malloc(bytes) : NULL;
    if (!sans)
        return NULL;
    at = (char *)(sans + count);
    for (int i = 0; i < count; i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        struct str kind = name->type == GEN_URI ? STR("URI:") : STR("DNS:");
        struct str text = san_text(name);

        if (!text.data)
            continue;
        memcpy(at, kind.data, kind.len);
        memcpy(at + 4, text.data, text.len);
        sans[(*sans_count)++] = str_span(at, text.len + 4);
        at += text.len + 4;
    }
    return sans;
}
