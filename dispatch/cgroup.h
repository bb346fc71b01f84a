/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU quota of the control groups that the process is in. */
#ifndef TRINE_CGROUP_H
#define TRINE_CGROUP_H

/* CPUs' worth of time, rounded up: the least quota of the process's group and those around it, as version 2 (cpu.max)
 * and version 1 (cpu.cfs_quota_us) of control groups say; 0 if there is none. `root` is put before each path that is
 * read: "" for the machine itself. */
int trine_cgroup_cpus(const char *root);

#endif
