/** A setting is missing or invalid. The message names the setting and its bounds. */
export class SettingError extends Error {
  override readonly name: string = 'SettingError'
}

/** Exit code for a wrong setting, with which another start does not help. */
const wrongSettingExitCode = 2

/** Ends the process with one line per fault and no stack: code 2 for a wrong setting, else 1. */
export function failStart(part: string, error: unknown): never {
  for (const line of startFault(error).split('\n')) console.error(`${part}: ${line}`)
  process.exit(error instanceof SettingError ? wrongSettingExitCode : 1)
}

const fileRemedies: Record<string, string> = {
  EACCES: 'let this user own it',
  EPERM: 'let this user own it',
  EROFS: 'its file system is read-only',
  ENOSPC: 'its disk is full',
}

/** Returns the message of an error; for a file or folder that cannot be used, its path and a remedy. */
export function startFault(error: unknown): string {
  const { message, code = '', path } = error as NodeJS.ErrnoException
  const remedy = path !== undefined && fileRemedies[code]
  return remedy ? `${path} cannot be used (${code}): ${remedy}` : message
}

/** Runs a command of one process. A wrong flag counts as a wrong setting: it ends the process with code 2. */
export async function runCommand(name: string, run: () => Promise<unknown>) {
  try {
    await run()
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    const isFlag = String(code).startsWith('ERR_PARSE_ARGS')
    failStart(name, isFlag ? new SettingError(`${message.split('. ')[0]}; --help lists the flags`) : error)
  }
}

/**
 * Calls `listen` with the host of a part. If the machine has no IPv6, `::` becomes `0.0.0.0`. Errors: `SettingError`
 * that names the setting, if the address or the port cannot be used.
 */
export async function listenOn<T>(part: string, host: string, port: number, listen: (host: string) => Promise<T>) {
  try {
    return await listen(host).catch((error: NodeJS.ErrnoException) => {
      if (host !== '::' || error.code !== 'EAFNOSUPPORT') throw error
      return listen('0.0.0.0')
    })
  } catch (error) {
    const fault = listenFault((error as NodeJS.ErrnoException).code, part, host, port)
    throw fault === undefined ? error : new SettingError(fault, { cause: error })
  }
}

function listenFault(code: string | undefined, part: string, host: string, port: number) {
  if (code === 'EADDRINUSE')
    return `${part}_PORT: the port ${port} is in use; stop the process that uses it, or set another port`
  if (code === 'EACCES') return `${part}_PORT: this user may not listen on port ${port}; set a port above 1023`
  if (['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EINVAL', 'EAFNOSUPPORT'].includes(code ?? ''))
    return `${part}_HOST: this machine has no address ${JSON.stringify(host)}; set one of its addresses, or :: for all`
  return undefined
}

export function fileFault(setting: string, path: string, { code = '' }: NodeJS.ErrnoException): string {
  const what: Record<string, string> = {
    ENOENT: 'does not exist',
    EACCES: 'is not readable by this user',
    EISDIR: 'is a folder',
  }
  return `${setting}: the file ${path} ${what[code] ?? `cannot be read (${code})`}`
}
