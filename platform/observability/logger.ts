import { type Logger, pino } from 'pino'

/**
 * Logs JSON lines to standard output, in the same format for all parts (docs/operating.md). Callers
 * must not log secrets or content. Redaction is the second line of defence.
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
