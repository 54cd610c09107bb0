import { type KnownRoute, pathOf, type View } from './router.ts'
import type { IconName } from './ui/page.tsx'

/** `view` is the first view of an area; `views` are its other views, such as one conversation. */
interface Area {
  name: string
  view: View
  icon: IconName
  key: string
  /** Whether phones show it without *More*. */
  isTab?: boolean
  views: View[]
}

/** Areas of the navigation, in groups. Their names stand here only. */
export const groups: { title: string; areas: Area[] }[] = [
  {
    title: 'Chat',
    areas: [
      { name: 'Inbox', view: 'inbox', icon: 'inbox', key: 'g i', isTab: true, views: ['conversation'] },
      { name: 'Saved replies', view: 'replies', icon: 'reply', key: 'g r', views: [] },
      { name: 'Report', view: 'report', icon: 'report', key: 'g e', isTab: true, views: [] },
    ],
  },
  {
    title: 'Leads',
    areas: [
      { name: 'Leads', view: 'leads', icon: 'leads', key: 'g l', isTab: true, views: ['lead'] },
      { name: 'Deliveries', view: 'deliveries', icon: 'deliveries', key: 'g d', views: ['delivery'] },
      {
        name: 'Destinations',
        view: 'subscriptions',
        icon: 'subscriptions',
        key: 'g s',
        views: ['subscription', 'new-subscription', 'new-hook'],
      },
      { name: 'Do not contact', view: 'suppressions', icon: 'suppressions', key: 'g u', views: ['suppression-import'] },
    ],
  },
  {
    title: 'Settings',
    areas: [
      {
        name: 'Websites',
        view: 'installations',
        icon: 'installations',
        key: 'g n',
        isTab: true,
        views: ['installation'],
      },
      { name: 'Personal data', view: 'people', icon: 'shield', key: 'g p', views: [] },
      { name: 'Team', view: 'team', icon: 'team', key: 'g t', views: [] },
      { name: 'Workspace', view: 'workspace', icon: 'settings', key: 'g w', views: ['changes'] },
    ],
  },
]
export const areas = groups.flatMap((group) => group.areas)

/** Returns the area of a view. */
export const areaOf = ({ view }: { view: View | 'unknown' }) =>
  areas.find((area) => [area.view, ...area.views].some((one) => one === view))

/** Returns the name of the area that begins with this view. */
export const areaName = (view: View): string => areaOf({ view })!.name

/** Returns the link back to an area. */
export const backTo = (view: View) => ({ path: pathOf({ view } as KnownRoute), label: areaName(view) })
