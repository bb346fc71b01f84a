/* SPDX-License-Identifier: Apache-2.0 */
/* CPU quotas: what containers and services are limited by. See proc(5), cgroups(7) and the kernel's
 * admin-guide/cgroup-v2.rst. */
#include "cgroup.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 4096 };

static bool read_line(const char *root, const char *folder, const char *name, char *line_out, int size) {
    char path[3 * PATH];
    snprintf(path, sizeof path, "%s%s/%s", root, folder, name);
    FILE *file = fopen(path, "re");
    if (file == NULL) return false;
    const bool good = fgets(line_out, size, file) != NULL;
    fclose(file);
    return good;
}

/* The quota of one group, in CPUs; 0 if it has none. */
static int quota_of(const char *root, const char *folder) {
    char line[128];
    long long quota = 0, period = 0;
    if (read_line(root, folder, "cpu.max", line, sizeof line)) {
        char *end;
        quota = strtoll(line, &end, 10); /* "max": 0 */
        period = strtoll(end, NULL, 10);
    } else if (read_line(root, folder, "cpu.cfs_quota_us", line, sizeof line)) {
        quota = strtoll(line, NULL, 10); /* -1: none */
        if (read_line(root, folder, "cpu.cfs_period_us", line, sizeof line)) period = strtoll(line, NULL, 10);
    }
    if (quota <= 0 || period <= 0) return 0;
    const long long cpus = quota / period + (quota % period != 0);
    return cpus < INT_MAX ? (int)cpus : 0;
}

/* The least quota of the groups from `folder` up to its beginning of `top` characters, the mount. */
static int least_quota(const char *root, char *folder, size_t top) {
    int least = 0;
    for (;;) {
        const int quota = quota_of(root, folder);
        if (quota > 0 && (least == 0 || quota < least)) least = quota;
        char *slash = strrchr(folder, '/');
        if (slash == NULL || slash < folder + top) return least;
        *slash = 0;
    }
}

/* Is `word` in a comma-separated list? */
static bool lists(const char *list, const char *word) {
    const size_t length = strlen(word);
    for (; list != NULL; list = strchr(list, ','), list = list ? list + 1 : NULL)
        if (strncmp(list, word, length) == 0 && strchr(",\n", list[length]) != NULL) return true;
    return false;
}

/* The process's group in the hierarchy of version 2, or in the one of version 1 that has the controller "cpu", as
 * /proc/self/cgroup has it: "0::/a/b" or "4:cpu,cpuacct:/a/b". */
static bool find_group(const char *root, bool second, char group_out[PATH]) {
    char path[2 * PATH], line[PATH + 256];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    bool found = false;
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL) continue;
        *group++ = 0;
        controllers++;
        group[strcspn(group, "\n")] = 0;
        found = second ? controllers[0] == 0 : lists(controllers, "cpu");
        if (found) snprintf(group_out, PATH, "%s", group);
    }
    if (file != NULL) fclose(file);
    return found;
}

/* The folder of the group in a mount that shows `shown` of the hierarchy at `mount`; false if its name is too long. In
 * a container that does not see the group's name, `mount` is the group. */
static bool folder_of(const char *mount, const char *shown, const char *group, char folder_out[2 * PATH]) {
    const size_t length = strcmp(shown, "/") == 0 ? 0 : strlen(shown);
    const bool inside =
        strncmp(group, shown, length) == 0 && strchr("/", group[length]) != NULL && strstr(group, "/..") == NULL;
    const char *below = inside && strcmp(group + length, "/") != 0 ? group + length : "";
    return snprintf(folder_out, 2 * PATH, "%s%s", mount, below) < 2 * PATH;
}

int trine_cgroup_cpus(const char *root) {
    char path[2 * PATH], line[3 * PATH], group[2][PATH];
    const bool has[2] = { find_group(root, false, group[0]), find_group(root, true, group[1]) };
    int least = 0;
    snprintf(path, sizeof path, "%s/proc/self/mountinfo", root);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char shown[PATH], mount[PATH], folder[2 * PATH];
        const char *rest = strstr(line, " - ");
        if (rest == NULL || sscanf(line, "%*s %*s %*s %4095s %4095s", shown, mount) != 2) continue;
        const bool second = strncmp(rest, " - cgroup2 ", 11) == 0;
        if (!second && strncmp(rest, " - cgroup ", 10) != 0) continue;
        const char *options = strrchr(rest, ' '); /* of the file system */
        if (!has[second] || (!second && !lists(options + 1, "cpu"))) continue;
        if (!folder_of(mount, shown, group[second], folder)) continue;
        const int quota = least_quota(root, folder, strlen(mount));
        if (quota > 0 && (least == 0 || quota < least)) least = quota;
    }
    if (file != NULL) fclose(file);
    return least;
}
