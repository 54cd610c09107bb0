/** What a lamp is for; also the last part of its catalogue page's address. */
export const lampKinds = { table: 'Table lamps', pendant: 'Pendant lamps', floor: 'Floor lamps' } as const
export type LampKind = keyof typeof lampKinds

export interface Lamp {
  id: string
  name: string
  kind: LampKind
  /** Whole euros. */
  price: number
  summary: string
  story: string
  facts: [label: string, value: string][]
  /** Background of its picture. */
  tone: string
}

export const lamps: readonly Lamp[] = [
  {
    id: 'fjord',
    name: 'Fjord',
    kind: 'table',
    price: 189,
    summary: 'Opal glass on turned ash',
    story:
      'A sphere of mouth-blown opal glass that rests, unglued, on a foot of ash. The light has no edge: it fills a corner the way fog fills a valley.',
    facts: [
      ['Height', '38 cm'],
      ['Bulb', 'E27, 7 W included'],
      ['Cable', '2 m, linen'],
      ['Made in', '8 days'],
    ],
    tone: '#dce6df',
  },
  {
    id: 'skog',
    name: 'Skog',
    kind: 'pendant',
    price: 249,
    summary: 'A wide shade of bent birch',
    story:
      'Twelve layers of birch veneer, bent over a mould and left to dry for a week. From below it throws a wide, warm circle: enough for a table of eight.',
    facts: [
      ['Width', '52 cm'],
      ['Bulb', 'E27, 9 W included'],
      ['Cable', '3 m, to be shortened'],
      ['Made in', '12 days'],
    ],
    tone: '#efe2cd',
  },
  {
    id: 'myr',
    name: 'Myr',
    kind: 'table',
    price: 159,
    summary: 'A reading lamp with a long arm',
    story:
      'Black steel, two joints that stay where you leave them, and a head that gives you the page and nobody else the glare.',
    facts: [
      ['Reach', '61 cm'],
      ['Bulb', 'GU10, 5 W included'],
      ['Dimmer', 'In the foot'],
      ['Made in', '6 days'],
    ],
    tone: '#dbe2ea',
  },
  {
    id: 'holm',
    name: 'Holm',
    kind: 'floor',
    price: 329,
    summary: 'Three legs of oak, one linen shade',
    story:
      'It stands behind the chair you always sit in. The shade is sewn by hand; when it fades, we sew you a new one.',
    facts: [
      ['Height', '151 cm'],
      ['Bulb', 'E27, 12 W included'],
      ['Switch', 'By foot'],
      ['Made in', '14 days'],
    ],
    tone: '#ead9d0',
  },
  {
    id: 'vind',
    name: 'Vind',
    kind: 'pendant',
    price: 209,
    summary: 'Folded paper, light as a sail',
    story: 'One sheet of paper, forty folds, no glue. It turns a little when a door opens, and so does its light.',
    facts: [
      ['Width', '44 cm'],
      ['Bulb', 'E27, 7 W included'],
      ['Cable', '3 m, to be shortened'],
      ['Made in', '5 days'],
    ],
    tone: '#e4e1ee',
  },
  {
    id: 'strand',
    name: 'Strand',
    kind: 'floor',
    price: 279,
    summary: 'A slim bow of steel with a glass drop',
    story:
      'A bow over the sofa, and at its end a drop of smoked glass. The foot is a beach stone, no two of them alike.',
    facts: [
      ['Height', '178 cm'],
      ['Bulb', 'G9, 4 W included'],
      ['Foot', 'Granite, 9 kg'],
      ['Made in', '10 days'],
    ],
    tone: '#d9e7e8',
  },
]

export const lampOf = (id: string): Lamp | undefined => lamps.find((lamp) => lamp.id === id)

export const isLampKind = (kind: string): kind is LampKind => Object.hasOwn(lampKinds, kind)

export const euros = (amount: number): string => `€ ${amount.toLocaleString('en-IE')}`
