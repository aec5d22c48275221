/* A library that knows whether it is whole: every byte of its body is its version. */
enum { BODY = 200 * 1024 };
#define FOUR VERSION, VERSION, VERSION, VERSION
#define MANY FOUR, FOUR, FOUR, FOUR, FOUR, FOUR, FOUR, FOUR
static const volatile unsigned char body[BODY] = {[0 ... BODY - 1] = VERSION};

int whole(void) {
    for (int i = 0; i < BODY; i++)
        if (body[i] != VERSION) return 0;
    return 1;
}
