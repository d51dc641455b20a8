#include "utf8.h"

static size_t announced_length(unsigned char lead)
{
    if (lead < 0x80)
        return 1;
    if (lead >= 0xC2 && lead <= 0xDF)
        return 2;
    if (lead >= 0xE0 && lead <= 0xEF)
        return 3;
    return lead >= 0xF0 && lead <= 0xF4 ? 4 : 0;
}

/* The second byte reveals overlong forms, surrogates and values above U+10FFFF. */
static bool second_byte_fits(unsigned char lead, unsigned char second)
{
    unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    return second >= low && second <= high;
}

size_t utf8_sequence(const char *at, const char *end)
{
    const unsigned char *bytes = (const unsigned char *)at;
    size_t length = at < end ? announced_length(bytes[0]) : 0;
    if (length == 0 || length > (size_t)(end - at))
        return 0;
    if (length > 1 && !second_byte_fits(bytes[0], bytes[1]))
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((bytes[i] & 0xC0) != 0x80)
            return 0;
    return length;
}

bool utf8_valid(const char *text, size_t length)
{
    const char *end = text + length;
    while (text < end) {
        size_t step = utf8_sequence(text, end);
        if (step == 0)
            return false;
        text += step;
    }
    return true;
}

static char trailing(uint32_t code, unsigned shift)
{
    return (char)(0x80 | ((code >> shift) & 0x3F));
}

size_t utf8_write(char *to, uint32_t code)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (char)(0xC0 | (code >> 6));
        to[1] = trailing(code, 0);
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (char)(0xE0 | (code >> 12));
        to[1] = trailing(code, 6);
        to[2] = trailing(code, 0);
        return 3;
    }
    to[0] = (char)(0xF0 | (code >> 18));
    to[1] = trailing(code, 12);
    to[2] = trailing(code, 6);
    to[3] = trailing(code, 0);
    return 4;
}
