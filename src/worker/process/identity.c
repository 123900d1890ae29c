/* See the header. Any thread. */
#include "worker/process/identity.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENTRY_BYTES 16384 /* of one user or group with all its members */
#define GROUPS_MAX 1024

static bool number_of(struct str text, uint32_t *number)
{
    int64_t value;

    if (!str_to_int64(text, &value) || value < 0 || value >= UINT32_MAX)
        return false;
    *number = (uint32_t)value;
    return true;
}

/* To become another user, to take its groups, and to end it afterwards. */
static bool may_change(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0, 0, 0}};
    const uint32_t wanted = 1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_KILL;

    return syscall(SYS_capget, &header, data) == 0 && (data[0].effective & wanted) == wanted;
}

static int find_user(const struct handler_rule *rule, struct arena *arena,
                     struct identity *identity, struct err *err)
{
    char *name = TRY_MEMORY(arena_cstr(arena, rule->user));
    char *bytes = TRY_MEMORY(arena_alloc(arena, ENTRY_BYTES));
    struct passwd entry;
    struct passwd *found = NULL;
    bool by_number = number_of(rule->user, &identity->ids.uid);

    if (by_number)
        getpwuid_r(identity->ids.uid, &entry, bytes, ENTRY_BYTES, &found);
    else
        getpwnam_r(name, &entry, bytes, ENTRY_BYTES, &found);
    if (!found && (!by_number || !rule->group.data))
        return err_set(err, ERR_INVALID, "handler '" STR_FMT "' names the user '%s', who does not "
                       "exist here%s", STR_ARG(rule->type), name,
                       by_number ? "; a number without an entry needs a group too" : "");
    if (found) {
        identity->ids.uid = found->pw_uid;
        identity->ids.gid = found->pw_gid;
        identity->name = found->pw_name;
        identity->home = found->pw_dir;
        identity->shell = found->pw_shell;
    }
    return 0;
}

static int find_group(const struct handler_rule *rule, struct arena *arena,
                      struct identity *identity, struct err *err)
{
    char *name = TRY_MEMORY(arena_cstr(arena, rule->group));
    char *bytes = TRY_MEMORY(arena_alloc(arena, ENTRY_BYTES));
    struct group entry;
    struct group *found = NULL;

    if (number_of(rule->group, &identity->ids.gid))
        return 0;
    getgrnam_r(name, &entry, bytes, ENTRY_BYTES, &found);
    if (!found)
        return err_set(err, ERR_INVALID, "handler '" STR_FMT "' names the group '%s', which does "
                       "not exist here", STR_ARG(rule->type), name);
    identity->ids.gid = found->gr_gid;
    return 0;
}

static int find_groups(struct arena *arena, struct identity *identity, struct err *err)
{
    gid_t *groups = TRY_MEMORY(arena_alloc_array(arena, GROUPS_MAX, sizeof *groups));
    int count = GROUPS_MAX;

    groups[0] = identity->ids.gid;
    if (!identity->name)
        count = 1;
    else if (getgrouplist(identity->name, identity->ids.gid, groups, &count) < 0)
        return err_set(err, ERR_INVALID, "the user '%s' has more than %d groups", identity->name,
                       GROUPS_MAX);
    identity->ids.groups = groups;
    identity->ids.groups_count = (uint32_t)count;
    return 0;
}

int identity_of_rule(const struct handler_rule *rule, struct arena *arena,
                     struct identity *identity, struct err *err)
{
    *identity = (struct identity){.ids = {.is_set = false}};
    if (!rule->user.data)
        return 0;
    TRY(find_user(rule, arena, identity, err));
    if (rule->group.data)
        TRY(find_group(rule, arena, identity, err));
    TRY(find_groups(arena, identity, err));
    if (identity->ids.uid == geteuid() && identity->ids.gid == getegid())
        return 0;
    if (!may_change())
        return err_set(err, ERR_FORBIDDEN, "handler '" STR_FMT "' shall run as the user '" STR_FMT
                       "', but this process may not change users; run it as root or with "
                       "CAP_SETUID, CAP_SETGID and CAP_KILL", STR_ARG(rule->type),
                       STR_ARG(rule->user));
    identity->ids.is_set = true;
    return 0;
}
