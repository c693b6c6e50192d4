/* Preloaded into a server, it makes the disk slower: every fsync and fdatasync takes FLUSH_DELAY_MS longer. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

static void delay(void)
{
    const char *text = getenv("FLUSH_DELAY_MS");
    long ms = text ? atol(text) : 0;
    struct timespec left = { ms / 1000, (ms % 1000) * 1000000L };
    int kept = errno;
    while (ms > 0 && nanosleep(&left, &left) == -1 && errno == EINTR)
        ;
    errno = kept;
}

int fsync(int fd)
{
    static int (*next)(int);
    if (!next)
        next = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    int result = next(fd);
    delay();
    return result;
}

int fdatasync(int fd)
{
    static int (*next)(int);
    if (!next)
        next = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    int result = next(fd);
    delay();
    return result;
}
