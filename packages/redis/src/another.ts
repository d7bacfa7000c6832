/** Which member of a cluster carries messages. They reach every one, so any one will do. */
import { systemRandom } from '@guard/core';

/** Takes another one each time: the last one may hang, and look well. */
export class Another {
  private last: string | undefined;

  /** @throws Error: there is none. */
  of<N>(members: readonly N[], nameOf: (member: N) => string): N {
    const others = members.filter((member) => nameOf(member) !== this.last);
    const among = others.length > 0 ? others : members;
    const member = among[Math.floor(systemRandom.fraction() * among.length)];
    if (member === undefined) throw new Error('no member of the cluster is known yet');
    this.last = nameOf(member);
    return member;
  }
}
