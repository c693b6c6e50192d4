// A disk that takes as long for a flush as the file named by FLUSH_MS says, in milliseconds, read again while it waits.
// cc -shared -fPIC -o disk.so disk.c -ldl, and LD_PRELOAD=disk.so

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static long flush_ms(void) {
  const char *path = getenv("FLUSH_MS");
  FILE *file = path ? fopen(path, "r") : NULL;
  long ms = 0;
  if (file) {
    if (fscanf(file, "%ld", &ms) != 1) ms = 0;
    fclose(file);
  }
  return ms;
}

static void wait_for_disk(void) {
  for (long waited_ms = 0; waited_ms < flush_ms(); waited_ms++) usleep(1000);
}

int fdatasync(int fd) {
  int (*flush)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  wait_for_disk();
  return flush(fd);
}

int fsync(int fd) {
  int (*flush)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  wait_for_disk();
  return flush(fd);
}
