"""Hosts that several tests look at."""

import pytest

CAPABILITIES = """<capabilities>
  <host>
    <uuid>4c4c4544-0000-2010-8020-80c04f202020</uuid>
    <cpu><arch>x86_64</arch><model>Skylake-Server-IBRS</model></cpu>
    <topology>
      <cells num='2'>
        <cell id='0'>
          <memory unit='KiB'>8388608</memory>
          <pages unit='KiB' size='4'>2097152</pages>
          <cpus num='4'>
            <cpu id='0' socket_id='0' die_id='0' core_id='0' siblings='0,4'/>
            <cpu id='1' socket_id='0' die_id='0' core_id='1' siblings='1,5'/>
            <cpu id='4' socket_id='0' die_id='0' core_id='0' siblings='0,4'/>
            <cpu id='5' socket_id='0' die_id='0' core_id='1' siblings='1,5'/>
          </cpus>
        </cell>
        <cell id='1'>
          <memory unit='KiB'>4194816</memory>
          <cpus num='4'>
            <cpu id='2' socket_id='1' die_id='0' core_id='0' siblings='2,6'/>
            <cpu id='3' socket_id='1' die_id='0' core_id='1' siblings='3,7'/>
            <cpu id='6' socket_id='1' die_id='0' core_id='0' siblings='2,6'/>
            <cpu id='7' socket_id='1' die_id='0' core_id='1' siblings='3,7'/>
          </cpus>
        </cell>
      </cells>
    </topology>
  </host>
</capabilities>
"""


@pytest.fixture
def capabilities() -> str:
    """Two cells of four CPUs, 8 GiB and 4 GiB + 512 KiB."""
    return CAPABILITIES
