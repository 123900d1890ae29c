#!/bin/sh
# A process handler as a shell script: one echo to descriptor 3 is a checkpoint.
#     perdura serve --config perdura.yaml
#     perdura enqueue example:sh --wait
# stdout lines become INFO logs, stderr lines WARN. Exit 0 = completed, 75 = continue later, else
# failed.
set -eu

read -r task                             # the task with its checkpoint, one line of JSON
done=${PERDURA_CHECKPOINT#step-}         # "step-2" is the last checkpoint's name, or empty
done=${done:-0}
echo "attempt $PERDURA_ATTEMPT of $PERDURA_TASK_ID (${#task} bytes), $done steps are done"

trap 'exit 75' TERM                      # cancelled, timed out or shutting down: come back later

while [ "$done" -lt 5 ]; do
    sleep 0.2                            # the work
    done=$((done + 1))
    echo "{\"progress\":$((done * 20)),\"state\":\"Step $done\"}" >&3
    echo "{\"checkpoint\":{\"name\":\"step-$done\",\"progress\":$((done * 20)),\"data\":$done}}" >&3
done
echo "{\"result\":{\"steps\":$done}}" >&3
