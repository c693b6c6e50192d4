// The needs of an attack on the machine. Each returns null, or why it is not there.

/** A network and mounts of one's own: root, or user namespaces. */
export function namespaces(): string | null {
  if (!Bun.which('unshare')) return 'unshare is not installed'
  const { exitCode } = Bun.spawnSync(['unshare', '-n', '-m', 'true'], { stdout: 'ignore', stderr: 'ignore' })
  return exitCode === 0 ? null : 'no right to make namespaces (unshare -n -m)'
}

/** Mounting a small file system. */
export function root(): string | null {
  return process.getuid?.() === 0 ? null : 'not root'
}

/** Mounts of one's own, and a port below 1024. */
export function ownMounts(): string | null {
  if (!Bun.which('unshare')) return 'unshare is not installed'
  const { exitCode } = Bun.spawnSync(['unshare', '-m', 'true'], { stdout: 'ignore', stderr: 'ignore' })
  return exitCode === 0 ? root() : 'no right to make mounts (unshare -m)'
}
