import { type Logger, pino } from 'pino'

/**
 * JSON lines on standard output, the same shape for each part (docs/operating.md). What must not be in a log is not handed
 * to it; redaction is the second line of defence.
 */
export function createLogger(part: string, level: string): Logger {
  return pino({
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
  })
}
