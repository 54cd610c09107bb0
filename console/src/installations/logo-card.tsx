import { initialOf } from '../../../browser/chat/initials.ts'
import { useConsole } from '../console-context.ts'
import { storedPath } from '../ui/avatar.tsx'
import { Card } from '../ui/page.tsx'
import { PictureField } from '../ui/picture-field.tsx'
import type { InstallationPart } from './update.ts'

/** Card that sets the logo that the widget shows beside its title. */
export function LogoCard({ installation: { publicSiteKey: siteKey, appearance }, onChanged }: InstallationPart) {
  const { api } = useConsole()
  const url = appearance?.logoUrl
  return (
    <Card title="Logo">
      <PictureField
        name="Logo"
        hint={
          url === undefined || storedPath(url)
            ? 'The chat shows it beside the title, until an operator answers.'
            : `The present logo is at ${URL.parse(url)?.host}. A file that you choose replaces it.`
        }
        shape="logo"
        initials={initialOf(appearance?.title ?? '')}
        url={url}
        onSave={async (picture) => {
          const { installation } = await api.workspaces.setLogo({ siteKey, ...picture })
          if (installation) onChanged(installation)
        }}
      />
    </Card>
  )
}
