/** Thrown if a setting is missing or invalid. The message names the setting and its bounds. */
export class SettingError extends Error {
  override readonly name: string = 'SettingError'
}

/** Exit code of a process whose setting is wrong: starting it again does not help. */
const wrongSettingExitCode = 2

/** Ends the process with one line per fault and no stack: code 2 for a wrong setting, else 1. */
export function failStart(part: string, error: unknown): never {
  const { message } = error as Error
  for (const line of message.split('\n')) console.error(`${part}: ${line}`)
  process.exit(error instanceof SettingError ? wrongSettingExitCode : 1)
}

/** Makes a wrong flag of a command a `SettingError`, with the first sentence of the message. */
export function asUsageError(error: unknown): unknown {
  const { code = '', message } = error as NodeJS.ErrnoException
  if (!code.startsWith?.('ERR_PARSE_ARGS')) return error
  return new SettingError(`${message.split('. ')[0]}; --help lists the flags`, { cause: error })
}

/** The address and the port to listen on, with the names of their settings. */
interface ListenSettings {
  host: [name: string, value: string]
  port: [name: string, value: number]
}

/**
 * Calls `listen` with the host. If the machine has no IPv6, `::` becomes `0.0.0.0`. Rejects with a
 * `SettingError` that names the setting if the address or the port cannot be used.
 */
export async function listenOn<T>(settings: ListenSettings, listen: (host: string) => Promise<T>): Promise<T> {
  const [, host] = settings.host
  try {
    return await listen(host).catch((error: NodeJS.ErrnoException) => {
      if (host !== '::' || error.code !== 'EAFNOSUPPORT') throw error
      return listen('0.0.0.0')
    })
  } catch (error) {
    const fault = listenFault((error as NodeJS.ErrnoException).code, settings)
    throw fault === undefined ? error : new SettingError(fault, { cause: error })
  }
}

function listenFault(code: string | undefined, { host, port }: ListenSettings) {
  if (code === 'EADDRINUSE')
    return `${port[0]}: the port ${port[1]} is in use; stop the process that uses it, or set another port`
  if (code === 'EACCES') return `${port[0]}: this user may not listen on port ${port[1]}; set a port above 1023`
  if (['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EINVAL', 'EAFNOSUPPORT'].includes(code ?? ''))
    return `${host[0]}: this machine has no address ${JSON.stringify(host[1])}; set one of its addresses, or :: for all`
  return undefined
}

/** Returns what is wrong with a file that a setting names, from the error of reading it. */
export function fileFault(setting: string, path: string, { code = '' }: NodeJS.ErrnoException): string {
  const what: Record<string, string> = {
    ENOENT: 'does not exist',
    EACCES: 'is not readable by this user',
    EISDIR: 'is a folder',
  }
  return `${setting}: the file ${path} ${what[code] ?? `cannot be read (${code})`}`
}
