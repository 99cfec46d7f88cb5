# What the tests of scripts share: counted checks, and a folder $scratch that is gone afterwards. Source it, check, then end with
# end_of_checks. What a script under test says on stderr belongs in $scratch/err: it is shown with a check that fails.
# shellcheck shell=bash

passed=0 failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

check() {  # SENTENCE EXPECTED ACTUAL
    if [[ $2 == "$3" ]]; then
        passed=$((passed + 1))
        echo "ok: $1"
    else
        failed=$((failed + 1))
        printf 'FAILED: %s\n  expected: %q\n  actual:   %q\n' "$1" "$2" "$3"
        # What was said on the way tells more than the difference.
        if [[ -e $scratch/err ]]; then sed 's/^/  | /' "$scratch/err"; fi
    fi
}

end_of_checks() {
    echo "$passed passed, $failed failed"
    [[ $failed == 0 ]]
}
