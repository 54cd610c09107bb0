import { write, writeSync } from 'node:fs'
import { type Logger, pino } from 'pino'

/** Maximum size of the lines that wait for standard output. Further lines are dropped. */
const bufferMaxLength = 1024 * 1024
const retryMs = 100

let droppedLines = 0

export interface LineLogger {
  warn(details: object, message: string): void
  info(details: object, message: string): void
}

export const droppedLineCount = (): number => droppedLines

/**
 * Creates a logger that writes JSON lines to standard output (docs/operating.md). Callers must not log secrets or
 * message content; the redaction is only a second protection.
 */
export function createLogger(part: string, level: string): Logger {
  const logger = pino(
    {
      level,
      base: { part },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: {
        paths: [
          '*.authorization',
          '*.accessGrant',
          '*.renewalToken',
          '*.assertion',
          '*.secret',
          '*.token',
          '*.body',
          '*.url',
          'headers',
          '*.headers',
          'err.metadata',
        ],
        censor: '[redacted]',
      },
    },
    createOutput((dropped) =>
      logger.warn({ dropped }, 'log lines were dropped, because standard output could not be written'),
    ),
  )
  return logger
}

/**
 * Writes to standard output without blocking. While a write fails, as on a full disk, keeps some lines, drops
 * further ones, and retries. Pino's own destination ends the process then, and waits forever for space at its
 * exit.
 */
function createOutput(onRecovered: (dropped: number) => void) {
  let lines: string[] = []
  let length = 0
  let dropped = 0
  let chunk = Buffer.alloc(0)
  let state: 'idle' | 'writing' | 'waiting' = 'idle'

  function takeLines() {
    const taken = Buffer.from(lines.join(''))
    lines = []
    length = 0
    return taken
  }

  function writeNext() {
    if (chunk.length === 0) chunk = takeLines()
    state = chunk.length === 0 ? 'idle' : 'writing'
    if (state === 'writing') return write(1, chunk, onWritten)
    if (dropped === 0) return
    const count = dropped
    dropped = 0
    onRecovered(count)
  }

  function onWritten(error: Error | null, written: number) {
    if (!error) {
      chunk = chunk.subarray(written)
      return writeNext()
    }
    state = 'waiting'
    setTimeout(writeNext, retryMs).unref()
  }

  function flushSync() {
    try {
      if (state !== 'writing') while (chunk.length > 0) chunk = chunk.subarray(writeSync(1, chunk))
      for (let rest = takeLines(); rest.length > 0; ) rest = rest.subarray(writeSync(1, rest))
    } catch {
      // The lines are lost: the process ends, or the caller must not wait.
    }
  }

  process.on('exit', flushSync)
  return {
    write(line: string) {
      if (length + line.length > bufferMaxLength) {
        dropped += 1
        droppedLines += 1
        return
      }
      lines.push(line)
      length += line.length
      if (state === 'idle') writeNext()
    },
    flushSync,
  }
}
