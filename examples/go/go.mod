module example.com/rocemu-example

go 1.19
