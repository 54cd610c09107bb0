// Writes docs/errors.md from proto/service/error/v1/error.proto: `npm run make -- errors`.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { publicErrors } from '../../contract/errors.ts'

const yesNo = (value: boolean) => (value ? 'yes' : 'no')

export function errorsDocument(): string {
  const errors = publicErrors
  return `# Errors

Every error response of the public API has this body, as \`application/json\`:

\`\`\`json
{"code":"RateLimited","retryable":true,"terminal":false,"retryAfter":3,"correlationId":"…"}
\`\`\`

- \`retryable\`: retry the same request with the same \`Idempotency-Key\` and exponential backoff.
- \`terminal\`: the session, the installation or the page has ended. Stop all automatic retries and tell the user.
- \`retryAfter\`: seconds to wait, if known. A 429 or 503 has the same value in \`Retry-After\`.
- \`correlationId\`: also in \`X-Correlation-Id\`. Include it when you report an error.
- \`issues\`, with \`ValidationFailed\` and \`IdentityAssertionInvalid\` only: a list of \`{path, rule}\`: the JSON pointer of the
  field and the name of the violated rule.

Decide by \`retryable\` and \`terminal\`, not by the code, because new codes can be added. Internal services return the same codes in a
\`service.error.v1.ErrorInfo\`. This page is generated from \`proto/service/error/v1/error.proto\` (\`npm run make -- errors\`).

| Code | HTTP | Retryable | Terminal |
|---|---|---|---|
${errors
  .map(
    ({ code, httpStatus, retryable, terminal }) =>
      `| [\`${code}\`](#${code.toLowerCase()}) | ${httpStatus} | ${yesNo(retryable)} | ${yesNo(terminal)} |`,
  )
  .join('\n')}

${errors.map(({ code, meaning, remedy }) => `## ${code}\n\n${meaning}\n\n**What to do:** ${remedy}\n`).join('\n')}`
}

if (import.meta.main) writeFileSync(join(import.meta.dirname, '../../docs/errors.md'), errorsDocument())
