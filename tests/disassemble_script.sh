#!/bin/bash
# Looks at the null loop of the release binary, and makes sure that the look would notice what does not belong there.
# Exit codes: 0 all passed · 1 something failed · 77 not an x86-64.
set -u
cd "$(dirname "$0")/.." || exit
. tests/check.sh

# Changes the last occurrence, which is in the loop: what is unrolled before it comes first.
spoiled() {  # SENTENCE SED-COMMAND WORD
    tac "$scratch/good" | sed "$2" | tac > "$scratch/bad"
    cmp -s "$scratch/good" "$scratch/bad" && echo "nothing was spoiled for: $1"
    scripts/disassemble --check "$scratch/bad" > "$scratch/out" 2> "$scratch/err"
    check "$1 is found" "1 yes" "$? $(grep -q "$3" "$scratch/err" && echo yes)"
}

[[ $(uname -m) == x86_64 ]] || { echo "skipped: not an x86-64"; exit 77; }
scripts/disassemble > "$scratch/good"
check "the loop is found" 0 $?
said=$(scripts/disassemble --check "$scratch/good")
check "the null loop is two stamps and two stores" 0 $?
echo "$said"
scripts/disassemble Spin > "$scratch/spin"
check "the loop of another engine is found" yes "$(grep -q 'engine::spin::Spin' "$scratch/spin" && echo yes)"
scripts/disassemble NoSuchEngine > /dev/null 2> "$scratch/err"
check "an engine that does not exist is said to" "1 1" "$? $(grep -c 'no loop of NoSuchEngine' "$scratch/err")"
scripts/disassemble --no-such-option > /dev/null 2>&1
check "an unknown option is a usage error" 2 $?

spoiled "a call" '0,/\trdtscp/s//\tcall 1234/' "a call"
spoiled "a locked instruction" '0,/\tshl .*/s//\tlock incq (%rax)/' "a locked"
spoiled "a division" '0,/\tshl .*/s//\tdiv %rcx/' "a division"
spoiled "a missing stop stamp" '0,/\trdtscp/s//\tlfence/' "stamps"
spoiled "a third store" '0,/\tlfence/s//\tmov %rax,0x10(%r10)/' "stores"
spoiled "a load between the stamps" '0,/\tor .*/s//\tmov (%rbx),%rax/;0,/\tor .*/s//\tmov (%rbx),%rax/' "between the stamps"
said=$(scripts/disassemble --check-calls)
check "every storage engine makes one call between its stamps" 0 $?
echo "$said"
scripts/disassemble Psync > "$scratch/good"
# A call in front of the first stop stamp.
awk '/\trdtscp/ && !done { print "  1:\tcall   1234"; done = 1 } { print }' "$scratch/good" > "$scratch/bad"
scripts/disassemble --check-calls "$scratch/bad" > /dev/null 2> "$scratch/err"
check "a second call between the stamps is found" "1 yes" "$? $(grep -q 'calls between' "$scratch/err" && echo yes)"
end_of_checks
