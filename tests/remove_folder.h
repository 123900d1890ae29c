/* Removes a test's folder and the files in it; folders inside stay, and then so does it. */
#ifndef TESTS_REMOVE_FOLDER_H
#define TESTS_REMOVE_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static inline void remove_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    char name[400];

    while (dir && (entry = readdir(dir))) {
        snprintf(name, sizeof name, "%s/%s", folder, entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlink(name);
    }
    if (dir)
        closedir(dir);
    rmdir(folder);
}

#endif
