/* SPDX-License-Identifier: Apache-2.0 */
/* CPU quotas of control groups, read from made-up trees. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dispatch/cgroup.h"
#include "tap.h"

static char root[64] = "/tmp/trine-cgroup-XXXXXX";

static void write_file(const char *path, const char *text) {
    char full[512];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *slash = strchr(full + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(full, 0700) != 0 && errno != EEXIST) perror(full);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) perror(full);
}

static void empty(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s/*", root);
    if (system(command) != 0) perror(command);
}

static void expect(int cpus, const char *what) {
    const int found = trine_cgroup_cpus(root);
    tap(found == cpus, "%s: %d of %d", what, found, cpus);
}

#define SECOND "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"

static void version_2(void) {
    write_file("proc/self/cgroup", "0::/a/b\n");
    write_file("proc/self/mountinfo", "24 1 8:1 / / rw - ext4 /dev/sda1 rw\n" SECOND);
    expect(0, "no quota file");
    write_file("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    expect(0, "max");
    write_file("sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
    expect(2, "one and a half are two");
    write_file("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
    expect(1, "a half is one");
    write_file("sys/fs/cgroup/a/b/cpu.max", "800000 100000\n");
    write_file("sys/fs/cgroup/a/cpu.max", "300000 100000\n");
    expect(3, "the group around it has less");
    write_file("sys/fs/cgroup/a/b/cpu.max", "200000 100000\n");
    expect(2, "the group around it has more");
    write_file("sys/fs/cgroup/a/b/cpu.max", "nonsense\n");
    expect(3, "nonsense is no quota");
    empty();
    write_file("proc/self/cgroup", "0::/\n");
    write_file("proc/self/mountinfo", SECOND);
    write_file("sys/fs/cgroup/cpu.max", "400000 100000\n");
    expect(4, "in a namespace, the mount is the group");
    empty();
}

static void version_1(void) {
    write_file("proc/self/cgroup", "5:cpuset:/\n4:cpu,cpuacct:/docker/x\n1:name=systemd:/docker/x\n");
    write_file("proc/self/mountinfo",
               "31 24 0:27 /docker/x /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n"
               "32 24 0:28 /docker/x /sys/fs/cgroup/cpu,cpuacct ro shared:3 - cgroup cgroup rw,cpu,cpuacct\n");
    write_file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    write_file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    expect(0, "version 1 without a quota");
    write_file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n");
    expect(3, "version 1: what the mount shows is the group");
    write_file("proc/self/mountinfo", "32 24 0:28 / /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n");
    write_file("sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "200000\n");
    write_file("sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
    expect(2, "version 1: a group below the mount");
    empty();
    write_file("proc/self/cgroup", "4:cpuacct:/\n");
    expect(0, "no controller of CPUs");
    empty();
    expect(0, "no files at all");
}

int main(void) {
    if (mkdtemp(root) == NULL) return tap_skip_all("no temporary directory");
    version_2();
    version_1();
    rmdir(root);
    return tap_end();
}
