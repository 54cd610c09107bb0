// Writes the codes of docs/errors.md from proto/service/error/v1/error.proto: `npm run make -- errors`.
import { publicErrors } from '../../contract/errors.ts'
import { readProjectFile, withRows, writeProjectFile } from './documents.ts'

const file = 'docs/errors.md'
const yesNo = (value: boolean) => (value ? 'yes' : 'no')

export function errorsDocument(): string {
  const rows = publicErrors.map(
    ({ code, httpStatus, retryable, terminal }) =>
      `| [\`${code}\`](#${code.toLowerCase()}) | ${httpStatus} | ${yesNo(retryable)} | ${yesNo(terminal)} |`,
  )
  const sections = publicErrors.map(
    ({ code, meaning, remedy }) => `\n## ${code}\n\n${meaning}\n\n**What to do:** ${remedy}\n`,
  )
  const [head = ''] = readProjectFile(file).split('\n## ')
  return withRows(head, 'Code | HTTP | Retryable | Terminal', rows) + sections.join('')
}

if (import.meta.main) writeProjectFile(file, errorsDocument())
