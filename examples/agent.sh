#!/usr/bin/env bash
# An agent's working day by curl, the same story as agent.ts: it remembers where it was, keeps to a rate limit, asks a
# human before it pays, plans a reminder, and dead-letters what fails so that a worker mends it.
#
#   examples/agent.sh [address]      address: where the service is, default http://127.0.0.1:8420
#
# CALLBACK_URL   where the reminder and the decision go. By default the decision goes nowhere, because the agent waits for
#                it, and the reminder to a port of the service's own machine at which nobody listens
#
# A stand-in approves in place of the human. Needs bash and curl. Keys stay in variables; none is printed.
set -euo pipefail

base=${1:-http://127.0.0.1:8420}
base=${base%/}
reminder_url=${CALLBACK_URL:-http://127.0.0.1:9/}
decision_url=${CALLBACK_URL:+"\"$CALLBACK_URL\""}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# From here on a human has to agree.
amount_alone_max=100
# The third payment fails, to have something to mend.
tries=0

main() {
  sign_up
  settle inv-1 20
  settle inv-2 900
  settle inv-3 35
  remind
  mend
  report
}

sign_up() {
  local name
  name="agent-$(date +%s)-$RANDOM"
  call 201 POST /v1/tenants "{\"name\": \"$name\", \"owner_email\": \"owner@example.com\"}"
  tenant_id=$(field tenant_id)
  admin="authorization: Bearer $(field admin_key)"
  key=$admin
  call 201 POST /v1/agents '{"name": "payer"}'
  agent="authorization: Bearer $(field api_key)"
  key=$agent
  say 'a tenant with one agent'
}

# settle <invoice> <amount>
settle() {
  if [ "$2" -gt "$amount_alone_max" ]; then ask "$1" "$2" || return 0; fi
  if pay "$1"; then
    say "$1 is paid"
  else
    call 201 POST /v1/dlq \
      "{\"payload\": {\"id\":\"$1\",\"amount\":$2}, \"error\": \"the bank is away\", \"workflow_id\": \"invoices\"}"
    say "$1 failed (the bank is away) and is dead-lettered"
  fi
}

# ask <invoice> <amount>: whether a human approved.
ask() {
  local checkpoint waiting
  call 201 POST /v1/checkpoints "{\"title\": \"Pay $2 for $1?\", \"callback_url\": ${decision_url:-null}}"
  checkpoint=$(field id)
  # The agent waits, 55 seconds at a time; meanwhile somebody decides.
  curl -sS -H "$agent" "$base/v1/checkpoints/$checkpoint?wait=55" >"$folder/decision" &
  waiting=$!
  key=$admin
  call 200 POST "/v1/checkpoints/$checkpoint/approve" '{"reason": "expected"}'
  key=$agent
  wait "$waiting" || fail 'the wait for the decision got no answer'
  body=$(cat "$folder/decision")
  say "$1 was $(field status): $(field reason)"
  [ "$(field status)" = approved ]
}

# pay <invoice>: fails when the bank does.
pay() {
  while ! allowed; do sleep "$retry_after"; done
  tries=$((tries + 1))
  [ "$tries" != 3 ] || return 1
  remember "$1"
  call 201 POST /v1/audit "{\"action\": \"$1.paid\", \"workflow_id\": \"invoices\"}" -H "idempotency-key: $1-paid"
}

# Succeeds when the bank may be called now; otherwise $retry_after says in how many seconds.
allowed() {
  call '200|429' POST /api/rate-limit/check '{"key": "bank", "limit": 10, "windowSeconds": 60}'
  retry_after=$(sed -n 's/^[Rr]etry-[Aa]fter: *\([0-9]*\).*/\1/p' "$folder/headers")
  [ "$status" = 200 ]
}

# remember <invoice>: adds it to the list of those paid. When another was faster, its list is read and tried again.
remember() {
  local list version
  while :; do
    list='' version=0
    call '200|404' GET /v1/kv/payer/paid
    if [ "$status" = 200 ]; then
      list=$(paid)
      version=$(sed -n 's/.*"version":\([0-9]*\).*/\1/p' <<<"$body")
    fi
    case $list in *"\"$1\""*) return ;; esac
    call '200|409' PUT /v1/kv/payer/paid "{\"value\": [${list:+$list,}\"$1\"], \"cas_version\": $version}"
    [ "$status" = 409 ] || return 0
  done
}

# The list in the last answer, without its brackets.
paid() {
  sed -n 's/.*"value":\[\([^]]*\)\].*/\1/p' <<<"$body"
}

remind() {
  call 201 POST /v1/schedules "{\"callback_url\": \"$reminder_url\", \"fire_at\": \"2099-01-01T09:00:00Z\",
    \"callback_payload\": {\"remember\": \"next invoices\"}, \"dlq_on_failure\": true}"
  say "a reminder is $(field status) for $(field fire_at)"
}

mend() {
  local letter lock_token invoice resolved=0
  while :; do
    call '200|204' POST /v1/dlq/claim '{"lock_seconds": 60}'
    [ "$status" = 200 ] || break
    invoice=$(sed -n 's/.*"payload":{"id":"\([^"]*\)".*/\1/p' <<<"$body")
    letter=$(field id)
    lock_token=$(field lock_token)
    if pay "$invoice"; then
      say "$invoice is paid at the second try"
      call 200 POST "/v1/dlq/$letter/resolve" "{\"lock_token\": \"$lock_token\"}"
      resolved=$((resolved + 1))
    else
      call 200 POST "/v1/dlq/$letter/fail" "{\"lock_token\": \"$lock_token\"}"
    fi
  done
  say "the worker resolved $resolved"
}

report() {
  local list action actions=''
  call 200 GET /v1/kv/payer/paid
  list=$(paid | tr -d '"')
  say "paid in the end: ${list//,/, }"
  call 200 GET '/v1/audit?workflow_id=invoices'
  # Newest first.
  for action in $(grep -o '"action":"[^"]*"' <<<"$body" | cut -d '"' -f 4); do
    actions="$action${actions:+, $actions}"
  done
  say "the audit log says: $actions"
  key=$admin
  call 202 DELETE "/v1/tenants/$tenant_id" '{"confirm": "DELETE ALL DATA"}'
  say 'done; the tenant is scheduled for deletion'
}

# call <expected status, or several with | between> <method> <path> [JSON body] [curl arguments…]
# Keeps the answer in $status and $body, its headers in a file. Sends the key in $key, if any.
call() {
  local expected=$1 method=$2 path=$3 json=${4:-}
  shift $(($# > 3 ? 4 : 3))
  status=$(curl -sS -o "$folder/body" -D "$folder/headers" -w '%{http_code}' -X "$method" "$base$path" \
    ${key:+-H "$key"} ${json:+-H 'content-type: application/json' --data-binary "$json"} "$@") ||
    fail "$method $path got no answer"
  body=$(cat "$folder/body" 2>/dev/null || true)
  rm -f "$folder/body"
  case "|$expected|" in
    *"|$status|"*) ;;
    *) fail "$method $path answered $status, not $expected: $body" ;;
  esac
}

# field <name>: the first text field of this name in the last answer.
field() {
  grep -o "\"$1\":\"[^\"]*\"" <<<"$body" | sed -n '1s/.*":"\(.*\)"/\1/p' | grep . || fail "the answer has no $1"
}

say() {
  echo "- $*"
}

# Ends the story with one line, without the keys and secrets that an answer may hold.
fail() {
  echo "agent: $*" | sed -E 's/(svc_..._|whsec_)[^" ]+/\1…/g' >&2
  exit 1
}

main
