import { type Failure, issueText } from '../failures.ts'
import { FailureNotice } from '../ui/notice.tsx'

interface IssueListProps {
  failure: Failure | undefined
  /** Returns the part of an issue's path that the form shows. */
  shownPath?: (path: string) => string
}

/** Lists the invalid fields of a failed call. Shows its error message if there are none. */
export function IssueList({ failure, shownPath = (path) => path }: IssueListProps) {
  if (!failure?.issues.length) return <FailureNotice failure={failure} />
  return (
    <ul class="field-error" role="alert">
      {failure.issues.map(({ path, rule }) => (
        <li key={`${path} ${rule}`}>{issueText({ path: shownPath(path), rule })}</li>
      ))}
    </ul>
  )
}
