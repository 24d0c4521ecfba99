# A minimal CPI in Ruby: parses the request, loads a JSON configuration, answers
# info and create_vm. Real CPIs also load the SDK of a cloud.
require 'json'

config = JSON.parse(File.read(ARGV[1]))
raise 'the configuration does not have version 1' unless config['version'] == 1

request = JSON.parse($stdin.read)
arguments = request['arguments']
result =
  case request['method']
  when 'info' then { 'api_version' => 2, 'stemcell_formats' => ['openstack-raw'] }
  when 'create_vm' then ["vm-#{arguments[0]}", arguments[3]]
  end
$stdout.write(JSON.generate('result' => result, 'error' => nil, 'log' => ''))
