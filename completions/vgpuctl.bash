# bash completion for vgpuctl; generated, do not edit
_vgpuctl_value() {
  case "$1" in
    ':--kubeconfig'|':--from'|'doctor:--kubeconfig'|'doctor:--from'|'top:--kubeconfig'|'top:--from'|'status:--kubeconfig'|'status:--from'|'history:--kubeconfig'|'history:--from'|'pod lint:--kubeconfig'|'pod lint:--from'|'install:--kubeconfig'|'upgrade:--kubeconfig'|'uninstall:--kubeconfig'|'config explain:--kubeconfig'|'config explain:--from'|'config diff:--kubeconfig'|'config diff:--from'|'config apply:--kubeconfig'|'config generate:--kubeconfig'|'config generate:--from'|'config migrate:--kubeconfig'|'config validate:--kubeconfig'|'config validate:--from'|'card cordon:--kubeconfig'|'card uncordon:--kubeconfig'|'quota set:--kubeconfig'|'quota list:--kubeconfig'|'quota list:--from'|'quota delete:--kubeconfig'|'quota apply:-f'|'quota apply:--filename'|'quota apply:--kubeconfig'|'quota export:--kubeconfig'|'quota export:--from'|'quota lint:--kubeconfig'|'quota lint:--from') compopt -o default 2>/dev/null; return ;;
    ':--context'|':--cluster'|':--user'|':--as'|':--as-group'|':-n'|':--namespace'|':-l'|':--selector'|':--request-timeout'|':-o'|':--output'|'doctor:--only'|'doctor:--skip'|'doctor:--dry-run'|'doctor:--cuda'|'doctor:--wait'|'doctor:--explain'|'doctor:--context'|'doctor:--cluster'|'doctor:--user'|'doctor:--as'|'doctor:--as-group'|'doctor:-n'|'doctor:--namespace'|'doctor:-l'|'doctor:--selector'|'doctor:--request-timeout'|'top:--interval'|'top:--group'|'top:--sort'|'top:--node'|'top:--queue'|'top:--context'|'top:--cluster'|'top:--user'|'top:--as'|'top:--as-group'|'top:-n'|'top:--namespace'|'top:-l'|'top:--selector'|'top:--request-timeout'|'status:--context'|'status:--cluster'|'status:--user'|'status:--as'|'status:--as-group'|'status:-n'|'status:--namespace'|'status:-l'|'status:--selector'|'status:--request-timeout'|'history:--last'|'history:--since'|'history:--who'|'history:--object'|'history:--context'|'history:--cluster'|'history:--user'|'history:--as'|'history:--as-group'|'history:-n'|'history:--namespace'|'history:-l'|'history:--selector'|'history:--request-timeout'|'run:--memory'|'run:--cores'|'run:--gpu'|'run:--simulate'|'bench:--limits'|'bench:--kernels'|'bench:--seconds'|'bench:--card'|'bench:--simulate'|'pod lint:--volcano-version'|'pod lint:--factor'|'pod lint:--gpus'|'pod lint:--context'|'pod lint:--cluster'|'pod lint:--user'|'pod lint:--as'|'pod lint:--as-group'|'pod lint:-n'|'pod lint:--namespace'|'pod lint:-l'|'pod lint:--selector'|'pod lint:--request-timeout'|'install:--node-selector'|'install:--toleration'|'install:--runtime-class'|'install:--image'|'install:--registry'|'install:--image-pull-secret'|'install:--monitoring-label'|'install:--max-unavailable'|'install:--priority-class'|'install:--skip'|'install:--export'|'install:--dry-run'|'install:--timeout'|'install:--context'|'install:--cluster'|'install:--user'|'install:--as'|'install:--as-group'|'install:-n'|'install:--namespace'|'install:-l'|'install:--selector'|'install:--request-timeout'|'upgrade:--node-selector'|'upgrade:--toleration'|'upgrade:--runtime-class'|'upgrade:--image'|'upgrade:--registry'|'upgrade:--image-pull-secret'|'upgrade:--monitoring-label'|'upgrade:--max-unavailable'|'upgrade:--priority-class'|'upgrade:--nodes'|'upgrade:--skip'|'upgrade:--dry-run'|'upgrade:--timeout'|'upgrade:--context'|'upgrade:--cluster'|'upgrade:--user'|'upgrade:--as'|'upgrade:--as-group'|'upgrade:-n'|'upgrade:--namespace'|'upgrade:-l'|'upgrade:--selector'|'upgrade:--request-timeout'|'uninstall:--dry-run'|'uninstall:--timeout'|'uninstall:--context'|'uninstall:--cluster'|'uninstall:--user'|'uninstall:--as'|'uninstall:--as-group'|'uninstall:-n'|'uninstall:--namespace'|'uninstall:-l'|'uninstall:--selector'|'uninstall:--request-timeout'|'config explain:--node'|'config explain:--context'|'config explain:--cluster'|'config explain:--user'|'config explain:--as'|'config explain:--as-group'|'config explain:-n'|'config explain:--namespace'|'config explain:-l'|'config explain:--selector'|'config explain:--request-timeout'|'config diff:--context'|'config diff:--cluster'|'config diff:--user'|'config diff:--as'|'config diff:--as-group'|'config diff:-n'|'config diff:--namespace'|'config diff:-l'|'config diff:--selector'|'config diff:--request-timeout'|'config apply:--accept'|'config apply:--dry-run'|'config apply:--timeout'|'config apply:--context'|'config apply:--cluster'|'config apply:--user'|'config apply:--as'|'config apply:--as-group'|'config apply:-n'|'config apply:--namespace'|'config apply:-l'|'config apply:--selector'|'config apply:--request-timeout'|'config generate:--gpus'|'config generate:--context'|'config generate:--cluster'|'config generate:--user'|'config generate:--as'|'config generate:--as-group'|'config generate:-n'|'config generate:--namespace'|'config generate:-l'|'config generate:--selector'|'config generate:--request-timeout'|'config migrate:--factor'|'config migrate:--from-factor'|'config migrate:--dry-run'|'config migrate:--timeout'|'config migrate:--context'|'config migrate:--cluster'|'config migrate:--user'|'config migrate:--as'|'config migrate:--as-group'|'config migrate:-n'|'config migrate:--namespace'|'config migrate:-l'|'config migrate:--selector'|'config migrate:--request-timeout'|'config validate:--volcano-version'|'config validate:--factor'|'config validate:--gpus'|'config validate:--context'|'config validate:--cluster'|'config validate:--user'|'config validate:--as'|'config validate:--as-group'|'config validate:-n'|'config validate:--namespace'|'config validate:-l'|'config validate:--selector'|'config validate:--request-timeout'|'card cordon:--dry-run'|'card cordon:--timeout'|'card cordon:--context'|'card cordon:--cluster'|'card cordon:--user'|'card cordon:--as'|'card cordon:--as-group'|'card cordon:-n'|'card cordon:--namespace'|'card cordon:-l'|'card cordon:--selector'|'card cordon:--request-timeout'|'card uncordon:--dry-run'|'card uncordon:--timeout'|'card uncordon:--context'|'card uncordon:--cluster'|'card uncordon:--user'|'card uncordon:--as'|'card uncordon:--as-group'|'card uncordon:-n'|'card uncordon:--namespace'|'card uncordon:-l'|'card uncordon:--selector'|'card uncordon:--request-timeout'|'quota set:--memory'|'quota set:--cores'|'quota set:--priority'|'quota set:--queue'|'quota set:--guarantee'|'quota set:--dry-run'|'quota set:--timeout'|'quota set:--context'|'quota set:--cluster'|'quota set:--user'|'quota set:--as'|'quota set:--as-group'|'quota set:-n'|'quota set:--namespace'|'quota set:-l'|'quota set:--selector'|'quota set:--request-timeout'|'quota list:--context'|'quota list:--cluster'|'quota list:--user'|'quota list:--as'|'quota list:--as-group'|'quota list:-n'|'quota list:--namespace'|'quota list:-l'|'quota list:--selector'|'quota list:--request-timeout'|'quota delete:--dry-run'|'quota delete:--context'|'quota delete:--cluster'|'quota delete:--user'|'quota delete:--as'|'quota delete:--as-group'|'quota delete:-n'|'quota delete:--namespace'|'quota delete:-l'|'quota delete:--selector'|'quota delete:--request-timeout'|'quota apply:--dry-run'|'quota apply:--timeout'|'quota apply:--context'|'quota apply:--cluster'|'quota apply:--user'|'quota apply:--as'|'quota apply:--as-group'|'quota apply:-n'|'quota apply:--namespace'|'quota apply:-l'|'quota apply:--selector'|'quota apply:--request-timeout'|'quota export:--context'|'quota export:--cluster'|'quota export:--user'|'quota export:--as'|'quota export:--as-group'|'quota export:-n'|'quota export:--namespace'|'quota export:-l'|'quota export:--selector'|'quota export:--request-timeout'|'quota lint:--volcano-version'|'quota lint:--factor'|'quota lint:--gpus'|'quota lint:--context'|'quota lint:--cluster'|'quota lint:--user'|'quota lint:--as'|'quota lint:--as-group'|'quota lint:-n'|'quota lint:--namespace'|'quota lint:-l'|'quota lint:--selector'|'quota lint:--request-timeout') return ;;
    ':--root'|'doctor:--root'|'top:--root'|'status:--root'|'history:--root'|'pod lint:--root'|'install:--hook-path'|'install:--kubelet-root'|'upgrade:--hook-path'|'upgrade:--kubelet-root'|'config explain:--root'|'config diff:--root'|'config generate:--root'|'config migrate:--to'|'config validate:--root'|'quota list:--root'|'quota export:--root'|'quota lint:--root') compopt -o dirnames 2>/dev/null; return ;;
    ':--fail-on'|'doctor:--fail-on'|'top:--fail-on'|'status:--fail-on'|'history:--fail-on'|'bench:--fail-on'|'pod lint:--fail-on'|'install:--fail-on'|'upgrade:--fail-on'|'uninstall:--fail-on'|'config explain:--fail-on'|'config diff:--fail-on'|'config apply:--fail-on'|'config generate:--fail-on'|'config migrate:--fail-on'|'config validate:--fail-on'|'config schema:--fail-on'|'card cordon:--fail-on'|'card uncordon:--fail-on'|'quota set:--fail-on'|'quota list:--fail-on'|'quota delete:--fail-on'|'quota apply:--fail-on'|'quota export:--fail-on'|'quota lint:--fail-on'|'version:--fail-on') COMPREPLY=($(compgen -W "error warn" -- "$cur")); return ;;
    'doctor:-o'|'doctor:--output') COMPREPLY=($(compgen -W "table wide short json yaml csv junit name" -- "$cur")); return ;;
    'top:-o'|'top:--output'|'config diff:-o'|'config diff:--output'|'config migrate:-o'|'config migrate:--output'|'quota list:-o'|'quota list:--output') COMPREPLY=($(compgen -W "table wide json yaml csv name" -- "$cur")); return ;;
    'status:-o'|'status:--output') COMPREPLY=($(compgen -W "table wide json yaml" -- "$cur")); return ;;
    'history:-o'|'history:--output'|'config explain:-o'|'config explain:--output') COMPREPLY=($(compgen -W "table wide json yaml csv" -- "$cur")); return ;;
    'bench:-o'|'bench:--output') COMPREPLY=($(compgen -W "table json yaml csv" -- "$cur")); return ;;
    'pod lint:-o'|'pod lint:--output'|'config validate:-o'|'config validate:--output'|'quota lint:-o'|'quota lint:--output') COMPREPLY=($(compgen -W "table wide json yaml junit csv name" -- "$cur")); return ;;
    'install:--shim'|'upgrade:--shim') COMPREPLY=($(compgen -W "vgpuctl upstream" -- "$cur")); return ;;
    'install:--profile'|'upgrade:--profile'|'config generate:--profile') COMPREPLY=($(compgen -W "training inference development" -- "$cur")); return ;;
    'install:--monitoring'|'upgrade:--monitoring') COMPREPLY=($(compgen -W "auto PodMonitor ServiceMonitor none" -- "$cur")); return ;;
    'install:-o'|'install:--output'|'upgrade:-o'|'upgrade:--output'|'uninstall:-o'|'uninstall:--output'|'config apply:-o'|'config apply:--output'|'card cordon:-o'|'card cordon:--output'|'card uncordon:-o'|'card uncordon:--output'|'quota set:-o'|'quota set:--output'|'quota delete:-o'|'quota delete:--output'|'quota apply:-o'|'quota apply:--output') COMPREPLY=($(compgen -W "table wide json yaml name" -- "$cur")); return ;;
    'config diff:--kind'|'config apply:--kind'|'config validate:--kind') COMPREPLY=($(compgen -W "device-config node-config scheduler" -- "$cur")); return ;;
    'config generate:--for') COMPREPLY=($(compgen -W "all device-config node-config scheduler" -- "$cur")); return ;;
    'config generate:-o'|'config generate:--output'|'quota export:-o'|'quota export:--output') COMPREPLY=($(compgen -W "yaml json" -- "$cur")); return ;;
    'config schema:-o'|'config schema:--output') COMPREPLY=($(compgen -W "json" -- "$cur")); return ;;
    'version:-o'|'version:--output') COMPREPLY=($(compgen -W "table json yaml" -- "$cur")); return ;;
    *) return 1 ;;
  esac
}
_vgpuctl() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path= words= flags= word i
  COMPREPLY=()
  if [[ $cur == "=" ]]; then cur=; elif [[ $prev == "=" ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    case "$word" in -*|=) ;; *)
      case "${path:+$path }$word" in
        doctor|top|status|history|run|bench|pod|'pod lint'|install|upgrade|uninstall|config|'config explain'|'config diff'|'config apply'|'config generate'|'config migrate'|'config validate'|'config schema'|card|'card cordon'|'card uncordon'|quota|'quota set'|'quota list'|'quota delete'|'quota apply'|'quota export'|'quota lint'|completion|version) path="${path:+$path }$word" ;;
      esac ;;
    esac
  done
  _vgpuctl_value "$path:$prev" && return
  case "$path" in
    '') words='doctor top status history run bench pod install upgrade uninstall config card quota completion version' ;;
    doctor) words='' ;;
    top) words='' ;;
    status) words='' ;;
    history) words='' ;;
    run) words='' ;;
    bench) words='limits sharing' ;;
    pod) words=lint ;;
    'pod lint') words='' ;;
    install) words='' ;;
    upgrade) words='' ;;
    uninstall) words='' ;;
    config) words='explain diff apply generate migrate validate schema' ;;
    'config explain') words='' ;;
    'config diff') words='' ;;
    'config apply') words='' ;;
    'config generate') words='' ;;
    'config migrate') words='' ;;
    'config validate') words='' ;;
    'config schema') words='device-config node-config scheduler' ;;
    card) words='cordon uncordon' ;;
    'card cordon') words='' ;;
    'card uncordon') words='' ;;
    quota) words='set list delete apply export lint' ;;
    'quota set') words='' ;;
    'quota list') words='' ;;
    'quota delete') words='' ;;
    'quota apply') words='' ;;
    'quota export') words='' ;;
    'quota lint') words='' ;;
    completion) words='bash zsh fish' ;;
    version) words='' ;;
  esac
  case "$path" in
    '') flags='--kubeconfig --context --cluster --user --as --as-group -n --namespace -A --all-namespaces -l --selector --request-timeout --from --demo --local --root -o --output --ascii --fail-on' ;;
    doctor) flags='--only --skip --fix --dry-run -y --yes --cuda --wait --list --explain --kubeconfig --context --cluster --user --as --as-group -n --namespace -A --all-namespaces -l --selector --request-timeout --from --demo --local --root -o --output --ascii --fail-on' ;;
    top) flags='--once --interval --group --sort --node --queue -w --watch --kubeconfig --context --cluster --user --as --as-group -n --namespace -A --all-namespaces -l --selector --request-timeout --from --demo --local --root -o --output --ascii --fail-on' ;;
    status) flags='--kubeconfig --context --cluster --user --as --as-group -n --namespace -A --all-namespaces -l --selector --request-timeout --from --demo --local --root -o --output --ascii --fail-on' ;;
    history) flags='--last --since --who --object --kubeconfig --context --cluster --user --as --as-group -n --namespace -A --all-namespaces -l --selector --request-timeout --from --demo --local --root -o --output --ascii --fail-on' ;;
    run) flags='--memory --cores --gpu --simulate' ;;
    bench) flags='--limits --kernels --seconds --card --simulate -o --output --ascii --fail-on' ;;
    pod) flags='' ;;
    'pod lint') flags='--live --volcano-version --factor --gpus --kubeconfig --context --cluster --user --as --as-group -n --namespace -A --all-namespaces -l --selector --request-timeout --from --demo --local --root -o --output --ascii --fail-on' ;;
    install) flags='--shim --profile --node-selector --toleration --runtime-class --hook-path --image --registry --image-pull-secret --monitoring --monitoring-label --max-unavailable --kubelet-root --priority-class --patch-scheduler --skip --export --images --wait --no-wait --dry-run -y --yes --timeout --force-conflicts --kubeconfig --context --cluster --user --as --as-group -n --namespace -A --all-namespaces -l --selector --request-timeout -o --output --ascii --fail-on' ;;
    upgrade) flags='--shim --profile --node-selector --toleration --runtime-class --hook-path --image --registry --image-pull-secret --monitoring --monitoring-label --max-unavailable --kubelet-root --priority-class --nodes --rollback --skip --dry-run -y --yes --timeout --force-conflicts --kubeconfig --context --cluster --user --as --as-group -n --namespace -A --all-namespaces -l --selector --request-timeout -o --output --ascii --fail-on' ;;
    uninstall) flags='--force --all --dry-run -y --yes --timeout --kubeconfig --context --cluster --user --as --as-group -n --namespace -A --all-namespaces -l --selector --request-timeout -o --output --ascii --fail-on' ;;
    config) flags='' ;;
    'config explain') flags='--node --kubeconfig --context --cluster --user --as --as-group -n --namespace -A --all-namespaces -l --selector --request-timeout --from --demo --local --root -o --output --ascii --fail-on' ;;
    'config diff') flags='--kind --kubeconfig --context --cluster --user --as --as-group -n --namespace -A --all-namespaces -l --selector --request-timeout --from --demo --local --root -o --output --ascii --fail-on' ;;
    'config apply') flags='--kind --accept --migrate --dry-run -y --yes --timeout --force-conflicts --kubeconfig --context --cluster --user --as --as-group -n --namespace -A --all-namespaces -l --selector --request-timeout -o --output --ascii --fail-on' ;;
    'config generate') flags='--profile --for --gpus --kubeconfig --context --cluster --user --as --as-group -n --namespace -A --all-namespaces -l --selector --request-timeout --from --demo --local --root -o --output --ascii --fail-on' ;;
    'config migrate') flags='--factor --from-factor --in-place --to --dry-run -y --yes --timeout --kubeconfig --context --cluster --user --as --as-group -n --namespace -A --all-namespaces -l --selector --request-timeout -o --output --ascii --fail-on' ;;
    'config validate') flags='--live --kind --volcano-version --factor --gpus --kubeconfig --context --cluster --user --as --as-group -n --namespace -A --all-namespaces -l --selector --request-timeout --from --demo --local --root -o --output --ascii --fail-on' ;;
    'config schema') flags='-o --output --ascii --fail-on' ;;
    card) flags='' ;;
    'card cordon') flags='--dry-run -y --yes --timeout --kubeconfig --context --cluster --user --as --as-group -n --namespace -A --all-namespaces -l --selector --request-timeout -o --output --ascii --fail-on' ;;
    'card uncordon') flags='--dry-run -y --yes --timeout --kubeconfig --context --cluster --user --as --as-group -n --namespace -A --all-namespaces -l --selector --request-timeout -o --output --ascii --fail-on' ;;
    quota) flags='' ;;
    'quota set') flags='--memory --cores --priority --queue --guarantee --dry-run -y --yes --timeout --force-conflicts --kubeconfig --context --cluster --user --as --as-group -n --namespace -A --all-namespaces -l --selector --request-timeout -o --output --ascii --fail-on' ;;
    'quota list') flags='--kubeconfig --context --cluster --user --as --as-group -n --namespace -A --all-namespaces -l --selector --request-timeout --from --demo --local --root -o --output --ascii --fail-on' ;;
    'quota delete') flags='--dry-run -y --yes --kubeconfig --context --cluster --user --as --as-group -n --namespace -A --all-namespaces -l --selector --request-timeout -o --output --ascii --fail-on' ;;
    'quota apply') flags='-f --filename --dry-run -y --yes --timeout --force-conflicts --kubeconfig --context --cluster --user --as --as-group -n --namespace -A --all-namespaces -l --selector --request-timeout -o --output --ascii --fail-on' ;;
    'quota export') flags='--kubeconfig --context --cluster --user --as --as-group -n --namespace -A --all-namespaces -l --selector --request-timeout --from --demo --local --root -o --output --ascii --fail-on' ;;
    'quota lint') flags='--live --volcano-version --factor --gpus --kubeconfig --context --cluster --user --as --as-group -n --namespace -A --all-namespaces -l --selector --request-timeout --from --demo --local --root -o --output --ascii --fail-on' ;;
    completion) flags='' ;;
    version) flags='-o --output --ascii --fail-on' ;;
  esac
  case "$path" in
    'pod lint') compopt -o default 2>/dev/null ;;
    'config diff') compopt -o default 2>/dev/null ;;
    'config apply') compopt -o default 2>/dev/null ;;
    'config validate') compopt -o default 2>/dev/null ;;
    'quota lint') compopt -o default 2>/dev/null ;;
  esac
  if [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$cur"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
  fi
}
complete -F _vgpuctl vgpuctl
